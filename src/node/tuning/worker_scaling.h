// WorkerScaling: runs a WorkerAutoscaler beside the controller: takes what WorkerLoads sees, and
// starts and stops workers by the pools of a worker pool file.
//
// Child processes leave when it stops; pods stay.
//
// Threading: observer()'s calls by the controller's loop; the rest by the owner. The autoscaler
// and the pools belong to a thread of their own, which child processes end with.
#ifndef FOLIOT_NODE_TUNING_WORKER_SCALING_H_
#define FOLIOT_NODE_TUNING_WORKER_SCALING_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "control/controller/cluster.h"
#include "control/fleet/pools/kubernetes_worker_pool.h"
#include "control/fleet/pools/process_worker_pool.h"
#include "control/fleet/pools/worker_pools.h"
#include "control/fleet/scalers/worker_autoscaler.h"
#include "control/fleet/scalers/worker_loads.h"
#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/platform/descriptor.h"
#include "foundation/platform/thread.h"
#include "node/tuning/worker_pool_file.h"

namespace foliot {

class WorkerScaling {
 public:
  // What workers write and what is decided: a line, and whether it is trouble.
  using OnLine = std::function<void(const std::string& line, bool trouble)>;
  // How many devices of each kind autoscalers of models want.
  using DevicesWanted = std::function<std::map<std::string, uint32_t>()>;
  // `cluster` and `worker_of` as WorkerLoads has them. The other two are called by the thread.
  WorkerScaling(WorkerPoolFile pools, const Cluster& cluster, WorkerLoads::WorkerOf worker_of,
                DevicesWanted devices_wanted, OnLine on_line);
  ~WorkerScaling() { stop(); }

  Observer& observer() { return loads_; }
  Status start();
  // Child processes finish what they were given. Calling it again does nothing.
  void stop();

 private:
  void run();
  void step(TimePoint now);
  std::vector<WorkerView> views(TimePoint now);
  void let_processes_leave();
  bool stopping() const;

  const DevicesWanted devices_wanted_;
  const OnLine on_line_;
  const Duration interval_;
  const std::vector<std::string> process_kinds_;
  Descriptor stop_;  // an eventfd, which can be read once it is to stop
  Mutex mutex_;
  std::vector<WorkerView> views_ GUARDED_BY(mutex_);
  TimePoint seen_at_ GUARDED_BY(mutex_);
  // The controller's loop's:
  WorkerLoads loads_;
  // The thread's:
  ProcessWorkerPool processes_;
  KubernetesWorkerPool kubernetes_;
  WorkerPools pools_;
  WorkerAutoscaler autoscaler_;
  std::string trouble_;
  Thread thread_;
};

}  // namespace foliot

#endif  // FOLIOT_NODE_TUNING_WORKER_SCALING_H_
