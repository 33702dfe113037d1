// TaskRouter: gives each call of a task the variant that answers it (INFaaS, section 4.1). A
// VariantPolicy chooses, by a VariantRegistry of the task that follows what the controller
// knows: which devices hold which variants, how long LOADs and EXECs take now, and what waits.
//
// A call's requests come one after another; the choice for the first is that of all.
//
// What the policy chooses is a request of that model from then on: it is queued, loaded for,
// batched, met or refused as any other. Where variants satisfy what was asked and none is
// predicted in time, the one that would answer first is chosen, and the scheduling policy
// has the last word: what is predicted to be too slow must be measured now and then.
//
// Costs. Residents, profiles and states of instances change the registry's indexes at the events that
// change them, or at the next call if no call comes between. When an instance could begin follows from
// all that waits, so it is brought up to date before a choice, for the instances of those variants of the
// task that are accurate and cheap enough: as many as these have on devices.
//
// Rejected: one registry for all tasks. Each event would cost by the number of tasks.
//
// Threading: the controller's. Time is an argument.
#ifndef FOLIOT_CONTROL_CONTROLLER_TASK_ROUTER_H_
#define FOLIOT_CONTROL_CONTROLLER_TASK_ROUTER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/controller/cluster.h"
#include "control/controller/task_options.h"
#include "control/controller/waiting_work.h"
#include "control/variants/instance_monitor.h"
#include "control/variants/variant_policy.h"
#include "control/variants/variant_registry.h"
#include "foundation/base/flat_map.h"
#include "foundation/base/time.h"
#include "foundation/core/action.h"
#include "foundation/core/request.h"
#include "foundation/core/task_info.h"

namespace foliot {

class TaskRouter {
 public:
  // `cluster` outlives this. REQUIRES: there is such a policy.
  TaskRouter(const Cluster& cluster, const TaskOptions& options);

  // As TaskSink.
  void add(std::shared_ptr<const TaskInfo> task);
  void remove(ServedTaskId task) { tasks_.erase(task); }
  bool has(ServedTaskId task) const { return tasks_.contains(task); }
  // Its task is there, and has its bucket.
  bool serves(const Request& request) const;

  // Facts.
  void on_waiting(const Request& request) { work_.add(request); }
  void on_taken(const Request& request) { work_.remove(request); }
  // A device came, left or is no longer up, or holds other models.
  void on_devices_changed();
  void on_residents_changed(ModelId model);
  void on_exec(const Action& action, Duration took, TimePoint now);
  // It is offered no more, or by other kinds or in other batch sizes.
  void on_model_changed(ModelId model);

  struct Route {
    ModelId model;
    bool chosen = false;
    std::string detail{};  // of a refusal: why, for people
    UnmetRequirement unmet = UnmetRequirement::kNone;
  };
  // REQUIRES: serves(request).
  Route route(const Request& request, TimePoint now);
  // No row of this call comes any more.
  void end_call(RequestId call) { calls_.erase(call); }
  // Why a request of a task was refused as kUnmeetable: what its variant would have taken.
  std::string unmeetable_detail(const Request& request) const;

 private:
  // A variant on devices of one kind.
  struct Entry {
    ModelId model;
    KindId kind;
    VariantId variant;
    Variant seeds;      // as the compiler measured it
    bool stale = true;  // its durations are to be read again
  };
  struct Served {
    std::shared_ptr<const TaskInfo> info;
    VariantRegistry registry;
    TaskId id;
    std::vector<Entry> entries;
    // Those of instances that ran since they were loaded.
    std::map<std::pair<VariantId, DeviceId>, InstanceMonitor> monitors;
    bool rebuild = true;  // models or kinds are others now
    bool residents_stale = true;
  };
  // Of a call of which rows are still to come.
  struct OpenCall {
    ModelId model;
    uint32_t rows_left = 0;
  };
  // The devices of a kind that a task has, and the EXEC that waits for them.
  struct KindQueue {
    int64_t devices = 0;
    Duration waiting;
  };
  static bool has_model(const Served& served, ModelId model) { return served.info->find(model) != nullptr; }

  void rebuild(Served& served);
  void add_entries(Served& served, const TaskVariant& variant);
  void follow_residents(Served& served);
  void follow_durations(Served& served);
  void count_queues(const Served& served);
  void follow_queues(Served& served, const VariantRequirements& asked, const Request& request, TimePoint now);
  // When the call would be answered there. REQUIRES: count_queues().
  TimePoint answered(const Entry& entry, DeviceId device, const Request& request, TimePoint now) const;
  Route choose(Served& served, const VariantRequirements& asked, const Request& request, TimePoint now);
  Route first_to_answer(Served& served, const VariantRequirements& asked, const Request& request, TimePoint now);
  static Route refuse(const Served& served, const VariantRequirements& asked);

  const Cluster& cluster_;
  const TaskOptions options_;
  const std::unique_ptr<VariantPolicy> policy_;
  WaitingWork work_;
  std::map<ServedTaskId, Served> tasks_;
  std::vector<KindQueue> queues_;       // by KindId, of the task that was last counted for
  std::vector<TimePoint> begins_;       // of a variant's instances, for a moment
  FlatMap<RequestId, OpenCall> calls_;  // by Request::call; at most as many as requests in flight
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_TASK_ROUTER_H_
