// The worker pool file: which workers a controller may start and stop, by kind:
//
//   start_up = "30s"         # from the start of a worker until it serves
//   hourly_budget = 2.0      # dollars, of all workers; default no limit
//
//   [[kind]]
//   name = "cpu"
//   workers_least = 1        # default 1
//   workers_most = 4         # default 8
//   command = ["foliot", "worker", "models"]
//
//   [[kind]]
//   name = "fast"
//   stateful_set = "ml/foliot-worker"   # NAMESPACE/NAME, in place of a command
//
//   [kubernetes]             # absent: as the pod's service account has it
//   server = "https://kubernetes.default.svc"
//   token_file = "..."
//   ca_file = "..."
#ifndef FOLIOT_NODE_TUNING_WORKER_POOL_FILE_H_
#define FOLIOT_NODE_TUNING_WORKER_POOL_FILE_H_

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "control/controller/task_options.h"
#include "control/fleet/pools/kubernetes_worker_pool.h"
#include "control/fleet/pools/process_worker_pool.h"
#include "control/fleet/scalers/worker_autoscaler.h"
#include "foundation/base/status.h"

namespace foliot {

struct WorkerPoolFile {
  WorkerAutoscalerOptions autoscaler;
  // Each kind of the autoscaler is in one of these.
  ProcessWorkerPoolOptions processes;
  KubernetesWorkerPoolOptions kubernetes;
};

// `prices`: dollars per hour of each kind. Errors: kInvalidArgument naming file, line and key, also of a kind without a
// price where several kinds or a budget are compared; kNotFound.
Result<WorkerPoolFile> read_worker_pool_file(const std::filesystem::path& file, const TaskOptions& prices);

// What makes each command a worker of the controller that listens there: `--controller` and
// `--data-listen` of this machine, where the command has none.
void add_worker_flags(ProcessWorkerPoolOptions& pools, std::string_view listen, uint16_t port);

}  // namespace foliot

#endif  // FOLIOT_NODE_TUNING_WORKER_POOL_FILE_H_
