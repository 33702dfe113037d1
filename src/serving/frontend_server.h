// FrontendServer: a front end of a cluster as one process runs it: HTTP and gRPC on one
// side, the links to the controller and its workers on the other.
//
// start() opens the ports; models are served once a controller was found. stop() answers
// what is in flight, refuses the rest, and ends all threads.
#ifndef FOLIOT_SERVING_FRONTEND_SERVER_H_
#define FOLIOT_SERVING_FRONTEND_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "access/tls.h"
#include "base/status.h"
#include "base/time.h"
#include "frontend/frontend.h"
#include "logging/logger.h"
#include "serving/access_files.h"
#include "transport/connection.h"

namespace foliot {

struct FrontendServerOptions {
  std::string controller = "127.0.0.1:8100";  // HOST:PORT
  FrontendOptions frontend;                   // its TLS and keys are those of `access`
  AccessFiles access;
  TlsFiles link_tls;
  uint64_t frame_bytes_max = kDataFrameBytesMax;   // inputs or outputs of one row
  Duration drain_timeout = Duration::seconds(30);  // of what is in flight at stop()
  // A controller was found and serves so many models; from the links' thread.
  std::function<void(size_t models)> on_ready = [](size_t) {};
};

// Threading: belongs to one thread, which is none of its own.
class FrontendServer {
 public:
  // `log` outlives the server.
  FrontendServer(FrontendServerOptions options, Logger& log);
  ~FrontendServer();

  // Call once. Errors: kInvalidArgument, kAlreadyExists (a port is in use), each naming the
  // flag, the file or the address.
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

#endif  // FOLIOT_SERVING_FRONTEND_SERVER_H_
