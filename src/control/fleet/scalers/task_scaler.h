// TaskScaler: what should be loaded of each task's variants, decided once a second from what the
// controller sees (ClusterView) by a ModelAutoscaler for each task, as Targets.
//
// A device is divided into kSharesPerDevice shares, and an instance is a variant with one of them: so
// variants and tasks share devices, and one variant may have several shares of one. Targets have
// copies: as many as devices are needed for a variant's shares. They set the least that stays
// loaded, never the most: what a call chooses besides is loaded on demand, and evicted first.
//
// What comes is what comes for the models of the variants, by their own names, too. Variants below
// the task's default accuracy are left to demand.
//
// Tasks take devices in the order of their ids. Where these do not suffice, as much as fits is asked
// for, and the shortage is reported.
//
// Threading: one owner, not the controller's thread. Time is an argument.
#ifndef FOLIOT_CONTROL_FLEET_SCALERS_TASK_SCALER_H_
#define FOLIOT_CONTROL_FLEET_SCALERS_TASK_SCALER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/controller/cluster_view.h"
#include "control/controller/targets.h"
#include "control/controller/task_options.h"
#include "control/fleet/scalers/model_autoscaler.h"
#include "control/fleet/scalers/solver.h"
#include "foundation/base/time.h"
#include "foundation/core/task_info.h"

namespace foliot {

class TaskScaler {
 public:
  static constexpr int64_t kSharesPerDevice = 4;

  // `solver` outlives this.
  TaskScaler(Solver& solver, TaskOptions prices, const ModelAutoscalerOptions& options = {})
      : solver_(solver), prices_(std::move(prices)), options_(options) {}

  void add(std::shared_ptr<const TaskInfo> task);
  void remove(ServedTaskId task) { tasks_.erase(task); }
  bool empty() const { return tasks_.empty(); }

  struct Step {
    Targets targets;
    // Of tasks whose load the devices cannot take, or for which no solver answered.
    std::map<std::string, Status> troubles;
    // Of tasks on several kinds of devices: those without a price, which count as the default's, by name.
    std::map<std::string, std::vector<std::string>> unpriced;
  };
  // REQUIRES: `now` never goes back.
  Step step(const ClusterView& view, TimePoint now);

 private:
  // A variant on devices of one kind.
  struct Choice {
    ModelId model;
    KindId kind;
    auto operator<=>(const Choice&) const = default;
  };
  struct Scaled {
    std::shared_ptr<const TaskInfo> info;
    std::vector<Choice> choices{};  // of the last step
    std::vector<int64_t> shares{};  // by choice: what should be loaded
    std::unique_ptr<ModelAutoscaler> autoscaler{};
  };
  // What the task is made of now; begins anew if that is not what it was.
  ScalingProblem problem_of(Scaled& scaled, const ClusterView& view) const;
  std::vector<std::string> unpriced_kinds(const Scaled& scaled, const ClusterView& view) const;
  static void limit_to(ScalingProblem& problem, const std::vector<int64_t>& free);
  static void add_targets(const Scaled& scaled, Targets& targets);

  Solver& solver_;
  const TaskOptions prices_;
  const ModelAutoscalerOptions options_;
  std::map<ServedTaskId, Scaled> tasks_;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_FLEET_SCALERS_TASK_SCALER_H_
