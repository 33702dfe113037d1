// Replica: one process of a container model, kept alive, as a device of the controller.
//
// Its thread starts a process, warms it up and measures it, and then joins the controller
// with it. A process that ends, or is killed because a call takes too long, is the loss of
// its device: what it had ends as kLost, and runs on another replica if there is time.
// Another process takes its place after kRestartDelayMin; after twice as long as before, up
// to kRestartDelayMax, where the last one served for less than kShortService. Calls
// have the time of ContainerTimeouts::after(), by how many were killed for a late one.
//
// Threading: belongs to its owner.
#ifndef FOLIOT_NODE_REPLICAS_REPLICA_H_
#define FOLIOT_NODE_REPLICAS_REPLICA_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/container/container_options.h"
#include "engine/container/container_process.h"
#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/core/model_info.h"
#include "foundation/logging/logger.h"
#include "foundation/platform/thread.h"
#include "foundation/platform/thread_starter.h"
#include "node/replicas/replica_place.h"

namespace foliot {

// What the replicas of a process share. All that it refers to outlives them.
struct ReplicaParts {
  ReplicaPlace& place;
  // Models are started by background threads, and replicas are no background work.
  ThreadStarter& threads;
  uint32_t infers_in_flight_max = 64;
  std::function<void(Severity, const std::string&)> log = [](Severity, const std::string&) {};
};

class Replica {
 public:
  static constexpr Duration kRestartDelayMin = Duration::milliseconds(100);
  static constexpr Duration kRestartDelayMax = Duration::seconds(30);
  static constexpr Duration kShortService = Duration::seconds(1);

  // `name`: "digits/0", in the log.
  Replica(const ReplicaParts& parts, std::string name, ContainerOptions options, std::string kind);
  ~Replica() { stop(); }

  // Starts the first process. Errors: kResourceExhausted.
  Status start();
  // Waits until the first process is measured. `cancelled` is asked several times a second.
  // Errors: ContainerProcess::start()'s, those of its first calls, and kUnavailable if it is
  // cancelled; the replica has stopped then.
  struct Measured {
    ContainerDescription description;
    std::vector<uint32_t> batch_sizes;
    std::vector<Duration> durations;  // by batch size
  };
  Result<Measured> wait_until_measured(const std::function<bool()>& cancelled);
  // From now on it joins the controller, which has this model. Once.
  void serve(std::shared_ptr<const ModelInfo> model);
  // Waits until it has joined. Errors: why the process that was measured could not.
  Status wait_until_joined();
  // Lets it finish what it has, kills the process, and returns when its device is lost. Calling
  // it again does nothing.
  void stop();

 private:
  void run();
  // One process, from its start to its end, and how long it served.
  Status run_process(Duration& served);
  // A process that has been measured. Errors: why there is none.
  Result<std::unique_ptr<ContainerProcess>> begin();
  Result<Measured> measure(ContainerProcess& process);
  void publish(Result<Measured> measured);
  void set_session(ReplicaPlace::Session* session);
  void set_joined(const Status& status);
  void forget_process();
  bool has_model();
  // nullptr: this stops.
  std::shared_ptr<const ModelInfo> wait_for_model();
  // Until the process has ended.
  Status serve_with(ContainerProcess& process, const std::shared_ptr<const ModelInfo>& model);
  // False: this stops.
  bool wait(Duration time);
  bool stopping() const { return stopping_.load(std::memory_order_acquire); }

  const ReplicaParts parts_;
  const std::string name_;
  const ContainerOptions options_;
  const std::string kind_;

  bool restarted_ = false;  // of the thread, as the next
  uint32_t late_kills_ = 0;
  std::atomic<bool> stopping_{false};
  Mutex mutex_;
  Condition changed_;
  std::optional<Result<Measured>> measured_ GUARDED_BY(mutex_);
  std::shared_ptr<const ModelInfo> model_ GUARDED_BY(mutex_);    // null until serve()
  std::optional<Status> joined_ GUARDED_BY(mutex_);              // of the first process with a model
  ReplicaPlace::Session* session_ GUARDED_BY(mutex_) = nullptr;  // null: it has not joined
  ContainerProcess* process_ GUARDED_BY(mutex_) = nullptr;       // null: none that could be killed
  Thread thread_;
};

}  // namespace foliot

#endif  // FOLIOT_NODE_REPLICAS_REPLICA_H_
