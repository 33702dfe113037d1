// FrontendServer: a front end of a cluster as one process runs it: HTTP and gRPC on one
// side, the links to the controller and its workers on the other.
//
// start() opens the ports; models are served once a controller was found. stop() answers
// what is in flight, refuses the rest, and ends all threads.
#ifndef FOLIOT_NODE_SERVER_FRONTEND_SERVER_H_
#define FOLIOT_NODE_SERVER_FRONTEND_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/transport/connection.h"
#include "edge/frontend/frontend.h"
#include "engine/container/container_options.h"
#include "foundation/access/tls.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/logging/logger.h"
#include "node/files/access_files.h"
#include "node/server/kept_jobs.h"
#include "observe/tracing/tracing.h"

namespace foliot {

struct FrontendServerOptions {
  std::string controller = "127.0.0.1:8100";  // HOST:PORT of each controller, with commas between them
  FrontendOptions frontend;                   // its TLS and keys are those of `access`
  AccessFiles access;
  TlsFiles link_tls;
  std::filesystem::path applications;          // a folder with those that it serves; empty: none
  std::vector<std::string> container_command;  // that starts their policies in Python (PolicyPlace)
  std::filesystem::path python_package;
  ContainerSafety containers;
  std::string state;                           // where they keep what they learn (StateKeeper); empty: nowhere
  std::optional<Duration> watch_interval;      // how often to look for changes of these and `personal`; nullopt: never
  std::filesystem::path personal;              // repository of personal models, whose users it keeps; empty: none
  std::filesystem::path observations;          // folder of what these observe; empty: <personal>/.observations
  std::string home_listen = "127.0.0.1:8300";  // HOST:PORT for other front ends that keep users
  KeptJobsOptions jobs;                        // offline queries over the cluster's models; nothing is registered here
  std::string name;  // among these, the same after a restart; empty: the machine's name and the port of home_listen
  uint32_t personal_threads = 1;
  uint64_t frame_bytes_max = kDataFrameBytesMax;  // inputs or outputs of one row
  TracingOptions tracing;
  Duration drain_timeout = Duration::seconds(30);  // of what is in flight at stop()
  // Of an application, or of where it learns: what is wrong, as a sentence. From any thread.
  std::function<void(const std::string&)> on_failure = [](const std::string&) {};
  // A controller was found and serves so many models; from the links' thread.
  std::function<void(size_t models)> on_ready = [](size_t) {};
};

// Threading: belongs to one thread, which is none of its own.
class FrontendServer {
 public:
  // `log` outlives the server.
  FrontendServer(FrontendServerOptions options, Logger& log);
  ~FrontendServer();

  // Call once. Errors: kInvalidArgument, kAlreadyExists (a port is in use), kUnavailable (the store
  // of what applications learn), each naming the flag, the file or the address.
  Status start();
  // Calling it again does nothing.
  void stop();

  // After start():
  Frontend& frontend();
  // Rows in flight.
  uint64_t in_flight() const;
  // "http 127.0.0.1:8000, grpc :8001, metrics :8002/metrics".
  std::string ports() const;

 private:
  class Parts;
  const FrontendServerOptions options_;
  Logger& log_;
  std::unique_ptr<Parts> parts_;  // null: not started, or stopped
};

}  // namespace foliot

#endif  // FOLIOT_NODE_SERVER_FRONTEND_SERVER_H_
