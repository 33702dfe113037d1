#include "node/tuning/task_scaling.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "control/fleet/scalers/greedy.h"
#include "control/fleet/solvers/cbc_solver.h"
#include "foundation/platform/clock.h"

namespace foliot {
namespace {

constexpr int kScalingNice = 10;

// CBC, and greedy_mixed where it does not answer.
class ProgramSolver : public Solver {
 public:
  Result<ScalingPlan> solve(const ScalingProblem& problem, Duration limit) override {
    return both_.solve(problem, limit);
  }

 private:
  CbcSolver cbc_;
  GreedyMixedSolver greedy_;
  FallbackSolver both_{cbc_, greedy_};
};

// What a scaler needs of a task. It is no lease of the models.
std::shared_ptr<const TaskInfo> without_leases(const TaskInfo& task) {
  auto copy = std::make_shared<TaskInfo>(task);
  for (TaskVariant& variant : copy->variants) {
    variant.model = std::make_shared<const ModelInfo>(ModelInfo{.id = variant.model->id, .name = variant.model->name});
  }
  return copy;
}

}  // namespace

Result<std::unique_ptr<Solver>> make_task_solver(std::string_view name) {
  if (name == "greedy") return std::unique_ptr<Solver>(std::make_unique<GreedySolver>());
  if (name == "greedy_mixed") return std::unique_ptr<Solver>(std::make_unique<GreedyMixedSolver>());
  if (name == "ilp") return std::unique_ptr<Solver>(std::make_unique<ProgramSolver>());
  return Status::not_found(
      fmt::format("there is no solver '{}' for tasks; there are greedy, greedy_mixed and ilp", name));
}

TaskScaling::TaskScaling(std::unique_ptr<Solver> solver, TaskOptions prices, SetTargets set_targets,
                         std::function<void(const std::string&)> on_note)
    : solver_(std::move(solver)),
      set_targets_(std::move(set_targets)),
      on_note_(std::move(on_note)),
      scaler_(*solver_, std::move(prices)) {}

Status TaskScaling::start() {
  FOLIOT_ASSIGN_OR_RETURN(thread_, Thread::start({.name = "tasks", .nice = kScalingNice}, [this] { run(); }));
  return Status();
}

void TaskScaling::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  thread_.join();
}

void TaskScaling::on_view(const ClusterView& view) {
  const MutexLock lock(mutex_);
  copy_of_tasks(view, view_);
}

void TaskScaling::copy_of_tasks(const ClusterView& from, ClusterView& to) const {
  to.at = from.at;
  to.interval = from.interval;
  to.kinds = from.kinds;
  to.models.resize(from.models.size());
  for (const auto& [id, task] : tasks_) {
    for (const TaskVariant& variant : task->variants) {
      const uint32_t model = variant.model->id.value();
      if (model < from.models.size()) to.models[model] = from.models[model];
    }
  }
}

void TaskScaling::on_task(const TaskInfo& task) {
  std::shared_ptr<const TaskInfo> kept = without_leases(task);
  const MutexLock lock(mutex_);
  tasks_.insert_or_assign(task.id, std::move(kept));
  has_tasks_.store(true, std::memory_order_relaxed);
}

void TaskScaling::on_task_removed(ServedTaskId task) {
  const MutexLock lock(mutex_);
  tasks_.erase(task);
  has_tasks_.store(!tasks_.empty(), std::memory_order_relaxed);
}

void TaskScaling::run() {
  while (true) {
    {
      MutexLock lock(mutex_);
      if (stop_.wait_for(mutex_, kInterval, [this]() REQUIRES(mutex_) { return stopping_; })) return;
    }
    step();
  }
}

void TaskScaling::step() {
  const TimePoint now = monotonic_now();
  std::map<ServedTaskId, std::shared_ptr<const TaskInfo>> tasks;
  {
    const MutexLock lock(mutex_);
    copy_of_tasks(view_, seen_);
    tasks = tasks_;
  }
  // Without events there are no views, and nothing comes.
  if (now - seen_.at > kInterval * 2) {
    for (ModelView& model : seen_.models) model.rate = 0;
  }
  for (const auto& [id, task] : tasks) {
    if (known_.insert(id).second) scaler_.add(task);
  }
  std::erase_if(known_, [&](ServedTaskId id) {
    if (tasks.contains(id)) return false;
    scaler_.remove(id);
    return true;
  });
  TaskScaler::Step step = scaler_.step(seen_, now);
  report(step);
  if (step.targets.models == targets_) return;
  targets_ = step.targets.models;
  set_targets_(std::move(step.targets));
}

void TaskScaling::report(const TaskScaler::Step& step) {
  std::set<std::string> troubled;
  for (const auto& [name, status] : step.troubles) {
    troubled.insert(name);
    if (!troubled_.contains(name)) on_note_(fmt::format("task '{}': {}", name, status.message()));
  }
  troubled_ = std::move(troubled);
  for (const auto& [name, kinds] : step.unpriced) {
    if (unpriced_.contains(name) && unpriced_.at(name) == kinds) continue;
    on_note_(fmt::format(
        "task '{}' runs on several kinds of devices, of which '{}' {} no price and {} as 1 dollar per hour: its "
        "cheapest variant may be the fastest one only; give the price of each kind with --prices",
        name, fmt::join(kinds, "', '"), kinds.size() == 1 ? "has" : "have", kinds.size() == 1 ? "counts" : "count"));
  }
  unpriced_ = step.unpriced;
}

}  // namespace foliot
