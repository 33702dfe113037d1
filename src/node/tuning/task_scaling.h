// TaskScaling: runs a TaskScaler beside the controller: takes its views, and sets its targets once a
// second.
//
// Threading: on_view() and the Observer's calls by the controller's loop; the rest by the owner. The
// solver runs on a thread of its own.
#ifndef FOLIOT_NODE_TUNING_TASK_SCALING_H_
#define FOLIOT_NODE_TUNING_TASK_SCALING_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "control/controller/cluster_view.h"
#include "control/controller/targets.h"
#include "control/controller/task_options.h"
#include "control/fleet/scalers/solver.h"
#include "control/fleet/scalers/task_scaler.h"
#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "foundation/core/observer.h"
#include "foundation/platform/thread.h"

namespace foliot {

// Solvers by name: "greedy", "greedy_mixed" or "ilp" (CBC, and greedy_mixed where it does not answer).
// Errors: kNotFound naming them.
Result<std::unique_ptr<Solver>> make_task_solver(std::string_view name);

class TaskScaling : public ClusterViewSink, public Observer {
 public:
  // As ModelAutoscalerOptions::interval has it.
  static constexpr Duration kInterval = Duration::seconds(1);

  using SetTargets = std::function<void(Targets)>;
  // `set_targets` is called by the thread, with what changes; `on_note` with troubles, once each time
  // that they begin.
  TaskScaling(std::unique_ptr<Solver> solver, TaskOptions prices, SetTargets set_targets,
              std::function<void(const std::string&)> on_note);
  ~TaskScaling() override { stop(); }

  Status start();
  // Calling it again does nothing.
  void stop();

  // While there are tasks.
  bool wants_view() override { return has_tasks_.load(std::memory_order_relaxed); }
  void on_view(const ClusterView& view) override;
  void on_task(const TaskInfo& task) override;
  void on_task_removed(ServedTaskId task) override;

 private:
  void run();
  void step();
  void report(const TaskScaler::Step& step);
  // What `from` has of the tasks' models, and of kinds; a view has all models. REQUIRES: mutex_ is held.
  void copy_of_tasks(const ClusterView& from, ClusterView& to) const REQUIRES(mutex_);

  const std::unique_ptr<Solver> solver_;
  const SetTargets set_targets_;
  const std::function<void(const std::string&)> on_note_;
  std::atomic<bool> has_tasks_{false};
  Mutex mutex_;
  Condition stop_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  ClusterView view_ GUARDED_BY(mutex_);
  std::map<ServedTaskId, std::shared_ptr<const TaskInfo>> tasks_ GUARDED_BY(mutex_);
  // The thread's:
  ClusterView seen_;
  TaskScaler scaler_;
  std::set<ServedTaskId> known_;
  std::map<ModelId, ModelTarget> targets_;
  std::set<std::string> troubled_;
  std::map<std::string, std::vector<std::string>> unpriced_;
  Thread thread_;
};

}  // namespace foliot

#endif  // FOLIOT_NODE_TUNING_TASK_SCALING_H_
