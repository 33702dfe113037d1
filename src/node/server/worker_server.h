// WorkerServer: a worker of a cluster as one process runs it: its repository and compiler,
// the device with its executors, and the links to the controller and to front ends.
//
// start() takes memory, compiles the smallest batch size of what is not compiled yet, and
// registers with the controller; the whole models follow as an update. stop() finishes what the controller gave, and
// ends all threads.
#ifndef FOLIOT_NODE_SERVER_WORKER_SERVER_H_
#define FOLIOT_NODE_SERVER_WORKER_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/transport/connection.h"
#include "engine/program/package.h"
#include "foundation/access/tls.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/logging/logger.h"
#include "models/repository/compile_process.h"
#include "models/repository/model_config.h"
#include "models/repository/package_share.h"
#include "node/devices/local_worker.h"
#include "node/files/telemetry.h"
#include "node/repository/container_check.h"
#include "node/repository/startup_reporter.h"

namespace foliot {

struct WorkerServerOptions {
  std::string name = "worker";
  std::string kind{kDefaultKind};             // of its device
  std::vector<std::string> models;            // patterns of names; empty: all of the repository
  std::string controller = "127.0.0.1:8100";  // HOST:PORT of each controller, with commas between them
  std::filesystem::path repository;
  std::filesystem::path cache;                  // empty: <repository>/.foliot
  std::shared_ptr<PackageShare> package_share;  // of PackageStore; null: none
  WeightsTier weights_tier = WeightsTier::kMemory;
  ModelConfig model_defaults;
  std::vector<std::string>
      compile_command;  // starts the process that compiles one model (models/repository/compile_process.h)
  CompileLimits compile_limits;
  // Starts the process of a container (engine/container/container_launch.h).
  std::vector<std::string> container_command;
  ContainerSafety containers;
  std::filesystem::path python_package;  // the folder that the Python package `foliot` lies in
  bool compile_in_background = true;
  uint32_t compilations = 1;               // at a time (node/repository/repository_service.h)
  std::optional<Duration> watch_interval;  // of the repository; nullopt: it is read once
  LocalWorkerOptions worker;
  std::string data_listen = "127.0.0.1:0";  // HOST:PORT for front ends; port 0: any that is free
  std::string data_address;                 // by which they reach it; empty: as the controller sees it
  std::optional<uint64_t> staging_bytes;    // nullopt: 8 of the largest batches
  // For what stages of pipelines compute. What is not used is address space and no memory.
  uint64_t held_bytes = uint64_t{256} << 20;
  uint64_t frame_bytes_max = kDataFrameBytesMax;   // inputs or outputs of one row
  Duration drain_timeout = Duration::seconds(30);  // of what the controller gave, at stop()
  TelemetryOptions observation;
  TlsFiles link_tls;
  // The controller has registered it with so many models; from the links' thread.
  std::function<void(size_t models)> on_ready = [](size_t) {};
};

// Threading: belongs to one thread, which is none of its own.
class WorkerServer {
 public:
  // `log` outlives the server.
  WorkerServer(WorkerServerOptions options, Logger& log);
  ~WorkerServer();

  // Call once. `cancelled` is asked several times a second, and ends the start: kUnavailable.
  // Errors: kInvalidArgument (no model can be served, a flag), kResourceExhausted,
  // kAlreadyExists (a port is in use), each naming the flag, the file or the address.
  Status start(StartupReporter& reporter, const std::function<bool()>& cancelled);
  // Calling it again does nothing.
  void stop();

  // After start(): "front ends on port 8200; page cache 4.0 GiB; controller a:8100".
  std::string description() const;

 private:
  class Parts;
  const WorkerServerOptions options_;
  Logger& log_;
  std::unique_ptr<Parts> parts_;  // null: not started, or stopped
};

}  // namespace foliot

#endif  // FOLIOT_NODE_SERVER_WORKER_SERVER_H_
