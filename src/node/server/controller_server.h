// ControllerServer: the controller of a cluster as one process runs it: the controller and
// its sessions on the loop of its links, with metrics and a record of what it decided.
//
// start() opens the ports; from then on workers and clients may connect. stop() finishes
// what runs, refuses the rest, and ends all threads.
//
// Of several controllers (cluster/election) each begins as one that stands by. One that led, and that another has
// replaced, has a state that is worth nothing: go_on() ends its parts and makes new ones, which stand by.
#ifndef FOLIOT_NODE_SERVER_CONTROLLER_SERVER_H_
#define FOLIOT_NODE_SERVER_CONTROLLER_SERVER_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "control/controller/controller.h"
#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/logging/logger.h"
#include "node/files/access_files.h"
#include "node/files/telemetry.h"
#include "node/server/election_thread.h"
#include "node/tuning/worker_pool_file.h"

namespace foliot {

struct ControllerServerOptions {
  std::string listen = "127.0.0.1:8100";  // HOST:PORT; port 0: any that is free
  std::string policy = "foliot";
  ControllerOptions controller{.health = FailureDetectorOptions()};
  // Solver of how many copies tasks' variants have (node/tuning/task_scaling.h); empty: they are loaded on
  // demand alone.
  std::string task_scaling = "greedy_mixed";
  // What follows the arrivals of pipelines that have a plan (node/tuning/pipeline_tuning.h); empty: nothing.
  std::string pipeline_tuner = "replan";
  std::filesystem::path plans;                     // folder of NAME/plan.toml; empty: no pipeline is tuned
  std::filesystem::path targets;                   // file of what should be of models (node/files/target_file.h)
  std::optional<WorkerPoolFile> worker_pools;      // workers that it starts and stops; none: others do
  Duration drain_timeout = Duration::seconds(30);  // of what runs at stop()
  TelemetryOptions observation;
  TlsFiles tls;           // of the links
  std::string election;   // where the record of the leader is (open_leader_store()); empty: this controller leads
  std::string advertise;  // HOST:PORT, by which this controller differs from the others
  Duration leader_timeout = ElectionOptions().leader_timeout;
};

// Threading: belongs to one thread, which is none of its own.
class ControllerServer {
 public:
  // `log` outlives the server.
  ControllerServer(ControllerServerOptions options, Logger& log);
  ~ControllerServer();

  // Call once. Errors: kNotFound (no such policy), kInvalidArgument, kAlreadyExists (a port
  // is in use), each naming the flag or the address.
  Status start();
  // To be called several times a second: stands by anew where another controller has taken over. Errors: as start().
  Status go_on();
  // One that leads lets another lead, if there is one, before it finishes what runs. Calling it again does nothing.
  void stop();

  // After start(): the port on which workers and clients connect.
  uint16_t port() const;
  // After start(): "ready: port 8100, scheduler foliot; metrics :8102/metrics".
  std::string description() const;

 private:
  class Parts;
  Status start_election();
  Status make_parts() REQUIRES(mutex_);
  void on_lead(uint64_t epoch);
  void on_stand_by();

  ControllerServerOptions options_;
  Logger& log_;
  mutable Mutex mutex_;                               // against the thread of the election
  std::unique_ptr<Parts> parts_ GUARDED_BY(mutex_);   // null: not started, or stopped
  std::optional<uint64_t> epoch_ GUARDED_BY(mutex_);  // with which this controller is to lead
  bool is_replaced_ GUARDED_BY(mutex_) = false;       // the parts led, and are to be made anew
  std::unique_ptr<ElectionThread> election_;          // null: there is none
};

}  // namespace foliot

#endif  // FOLIOT_NODE_SERVER_CONTROLLER_SERVER_H_
