// Controller: requests in, actions out, completions back (Clockwork, section
// 4.5). It owns the facts (Cluster), admits requests, lets the policy propose,
// checks and sends what it proposes, takes outcomes in, and sees to it that every
// request gets exactly one Completion.
//
// A single-threaded state machine: each call is an event with its time; after one
// or more events the loop calls turn(), which lets the policy decide and says
// when to call again.
#ifndef FOLIOT_CONTROL_CONTROLLER_CONTROLLER_H_
#define FOLIOT_CONTROL_CONTROLLER_CONTROLLER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/controller/action_table.h"
#include "control/controller/cluster.h"
#include "control/controller/failure_detector.h"
#include "control/controller/fair_share.h"
#include "control/controller/pipeline_runs.h"
#include "control/controller/policy.h"
#include "control/controller/proposal_check.h"
#include "control/controller/request_table.h"
#include "control/controller/serving_ability.h"
#include "control/controller/targets.h"
#include "control/controller/task_options.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/core/observer.h"
#include "foundation/core/ports.h"

namespace foliot {

class TaskRouter;

struct ControllerOptions {
  // Requests waiting for an action, among which classes and tenants have their shares
  // (foundation/core/queue_shares.h). Beyond that a request is refused as kOverload: the one that
  // comes, or one that waits.
  uint32_t queued_max = 65536;
  // Actions of each kind that one device has outstanding.
  uint32_t infers_outstanding_max = 32;
  uint32_t loads_outstanding_max = 64;
  DeviceTimingOptions timing;
  // How often a request may come back from a worker that refused its action.
  uint32_t returns_max = 3;
  // Front ends attach to a worker once it has registered. Until then it refuses their
  // requests, whose inputs do not come: for so long these refusals are not counted.
  Duration attachment_wait = Duration::seconds(1);
  // Requests of a model of which all devices that can run it are lost are refused
  // (kWorkerLost) after so long: requests that have no deadline would wait for ever.
  Duration lost_devices_wait = Duration::seconds(10);
  LoadBackOffOptions load_back_off;
  TaskOptions tasks;
  PipelineSlack pipeline_slack = PipelineSlack::kShared;
  // None: devices are taken to be well. With it, turn() finds those that are not, and
  // notifies observers.
  std::optional<FailureDetectorOptions> health;
  // Makes its DurationModel. Empty: a RollingDurationModel, which expects nothing of groups.
  std::function<std::unique_ptr<DurationModel>()> make_durations{};
};

class Controller : private Dispatcher, private PipelineRuns::Owner {
 public:
  using PolicyFactory = std::function<std::unique_ptr<Policy>(const Cluster&)>;

  // All references outlive the controller.
  Controller(const ControllerOptions& options, const PolicyFactory& make_policy, ActionSink& actions,
             CompletionSink& completions);
  ~Controller() override;

  // Before the first event. Observers are called in this order.
  void add_observer(Observer& observer) { observers_.push_back(&observer); }

  // Events.
  // A device joins, as the next id or as one that was lost. Its pages hold
  // `residents` and nothing else, and it has nothing to do. REQUIRES: they are models
  // that exist, each once, that devices of its kind can run, and fit; one that was lost
  // is of the kind that it was of; may_add_kind(kind); it has 1 to kLanesMax lanes and 1 to kContextsMax
  // contexts.
  void join_device(DeviceId device, uint32_t page_count, std::span<const ModelId> residents, TimePoint now,
                   std::string_view kind = kDefaultKind, uint32_t lane_count = 1, uint32_t context_count = 1);
  // The next id, empty.
  DeviceId add_device(uint32_t page_count, TimePoint now, std::string_view kind = kDefaultKind, uint32_t lane_count = 1,
                      uint32_t context_count = 1);
  // Whether there may be devices of this kind, and models that run on them: one that is
  // there, or one of kKindsMax.
  bool may_add_kind(std::string_view kind) const {
    return cluster_.knows_kind(kind) || cluster_.kind_count() < kKindsMax;
  }
  // A lost device may not join before this.
  TimePoint may_join(DeviceId device) const {
    return failure_detector_ ? failure_detector_->may_join(device) : TimePoint();
  }
  // A message of the device has come, a heartbeat at least.
  void on_message(DeviceId device, TimePoint now);
  // It gets no more work; once idle() it may leave.
  void drain_device(DeviceId device, TimePoint now);
  bool idle(DeviceId device) const;
  void resume_device(DeviceId device, TimePoint now);  // it stays after all
  // It is fenced: its messages may not come here any more. Its actions end as kLost;
  // requests of them that still have time are planned again, the others are refused
  // (kWorkerLost).
  void lose_device(DeviceId device, DeviceTrouble trouble, TimePoint now);
  // `model.id` is the next free one: the number of models added so far, or that
  // of one removed.
  void add_model(std::shared_ptr<const ModelInfo> model, TimePoint now);
  // The model can be run in more batch sizes, or by more kinds of device. REQUIRES: it is
  // not being removed; `model` is what it was, but for larger batch sizes behind those
  // that it had, and more runnables.
  void extend_model(std::shared_ptr<const ModelInfo> model);
  // Refuses the model's queued requests (kUnloaded) and unloads it; model_gone()
  // is true once nothing of it is left.
  void remove_model(ModelId model, TimePoint now);
  bool model_gone(ModelId model) const;
  // From now on these are in force, all or none of them, in place of those before. Errors:
  // kNotFound naming a model that is not there, kInvalidArgument naming model, value and
  // limit: a kind that no device and no model has, copies_least above copies_most, batch_most
  // of 0. Targets go with their model.
  Status set_targets(const Targets& targets, TimePoint now);
  // As PipelineSink.
  void add_pipeline(std::shared_ptr<const PipelineInfo> pipeline);
  void remove_pipeline(PipelineId pipeline);
  // As TaskSink.
  void add_task(std::shared_ptr<const TaskInfo> task);
  void remove_task(ServedTaskId task);
  // Of a task: none of the call's rows comes any more. To be called where not all may have come.
  void end_call(RequestId call);
  // As PipelineRuns.
  void end_runs(ModelId model, TimePoint now) { runs_.remove_model(model, now); }
  void hold_outputs(VisitOutputs& outputs) { runs_.hold_outputs(outputs); }
  void set_held_room(const HeldRoom& room) { runs_.set_room(room); }
  // nullopt: it is no visit of a run.
  std::optional<VisitOrder> visit_order(RequestId request) const {
    return runs_.is_visit(request) ? std::optional(runs_.order(request)) : std::nullopt;
  }
  // Gives the request its sequence number, whatever it brings. One for a pipeline becomes a run,
  // one for a task a request of the variant that is chosen.
  void on_request(const Request& request, TimePoint now);
  // Refuses the request, if it is queued or a run, for this reason.
  void on_cancel(RequestId request, Refusal reason, TimePoint now);
  // REQUIRES: of an action that is outstanding.
  void on_outcome(const Outcome& outcome, TimePoint now);
  // Refuses what is queued and all that comes after (kDraining).
  void drain(TimePoint now);

  // Lets the policy decide. Returns when to call it again at the latest.
  TimePoint turn(TimePoint now);

  const Cluster& cluster() const { return cluster_; }
  // Of pipelines, that have no completion.
  size_t runs() const { return runs_.size(); }
  uint64_t queued() const { return requests_.waiting(); }
  const CountByClass& queued_by_class() const { return requests_.waiting_by_class(); }
  uint64_t actions_outstanding() const { return actions_outstanding_.size(); }
  // nullptr: there is no such action without an outcome.
  const Action* outstanding(ActionId action) const { return actions_outstanding_.find(action); }
  // Proposals of the policy that were turned down: zero unless it has a bug.
  uint64_t proposals_rejected() const { return proposals_rejected_; }

 private:
  Verdict load(DeviceId device, ModelId model, Window window) override;
  Verdict unload(DeviceId device, ModelId model) override;
  Verdict retire(DeviceId device, ModelId model) override;
  Verdict infer(DeviceId device, ModelId model, BucketId bucket, uint32_t batch_size, LaneInterval lanes,
                std::span<const RequestId> requests, Window window) override;
  Verdict begin(DeviceId device, ModelId model, BucketId bucket, uint32_t batch_size, const ExecPart& part,
                Duration expected, std::span<const RequestId> requests, Window window) override;
  Verdict resume(DeviceId device, ContextIndex context, uint32_t last, LaneInterval lanes, Duration expected,
                 Window window) override;
  Verdict abandon(DeviceId device, ContextIndex context, Refusal reason, TimePoint earliest_completion) override;
  Verdict refuse(RequestId request, Refusal reason, TimePoint earliest_completion) override;

  void submit_visit(const Request& visit, TimePoint now) override { admit(visit, now); }
  void cancel_visit(RequestId visit, Refusal reason, TimePoint now) override { withdraw(visit, reason, now); }
  void run_over(const Completion& completion, TimePoint now) override;

  // Of a task.
  void route(const Request& asked, TimePoint now);
  // Of a model.
  void admit(const Request& asked, TimePoint now);
  void put_off(RequestTable::Entry& entry, TimePoint now);
  void reserve_output(RequestTable::Entry& entry, TimePoint now) const;
  void doubt_output(const RequestTable::Entry& refused);
  Duration measure_output(const Action& action, const Outcome& outcome);
  // If it is queued.
  void withdraw(RequestId request, Refusal reason, TimePoint now);

  // Of a whole batch that begins, but for its duration and lanes. Takes the requests out of
  // their queues.
  void begin_infer(Action& action, DeviceId device, ModelId model, BucketId bucket, uint32_t batch_size, Window window,
                   std::span<const RequestId> requests);
  void send_infer(const Action& action);
  void refuse_rows(const Action& action, Refusal reason, TimePoint earliest_completion, TimePoint now);
  Verdict reject(Verdict verdict);
  // REQUIRES: check_.unload() accepts it.
  void send_unload(DeviceId device, ModelId model);
  void set_target(ModelId model, const ModelTarget& target, TimePoint now);
  // Where the model may not be placed.
  void put_forbidden_aside(DeviceId device, ModelId model);
  void put_aside(DeviceId device, ModelId model);
  void send(const Action& action);
  void doubt_if_idle(const RequestTable::Entry& refused);
  void continue_removal(ModelId model);

  void set_device_state(DeviceId device, DeviceState state, DeviceTrouble trouble, TimePoint now);
  void check_devices(TimePoint now);
  void device_changed(const DeviceChange& change, TimePoint now);

  void load_over(const Action& action, const Outcome& outcome);
  void load_failed(const Action& action, TimePoint now);
  void exec_failed(const Action& action, TimePoint now);
  void unload_set_aside(DeviceId device, ModelId model);
  void end_back_offs(TimePoint now);
  void unload_over(const Action& action, const Outcome& outcome);
  // Returns whether each part of the batch that this was the last of took all lanes, so that together they are an EXEC
  // of it.
  bool parts_were_alone(const Action& last) const;
  Outcome of_all_parts(const Action& action, Outcome outcome) const;
  // Returns whether its batch goes on.
  bool exec_over(const Action& action, const Outcome& outcome);
  void record_exec(const Action& action, const Outcome& outcome);
  void infer_over(const Action& action, const Outcome& outcome, TimePoint now);
  void row_over(const Action& action, const Outcome& outcome, uint32_t index, TimePoint now);
  void refuse_failed(RequestId id, TimePoint now);
  void give_back(RequestTable::Entry& entry, OutcomeStatus status, TimePoint now);
  // Whether inputs that did not come may be those of a front end that is not attached to the worker yet.
  bool perhaps_unattached(const Outcome& outcome, TimePoint now) const;
  // Completes a queued request that the policy knows nothing of (any more).
  void complete_refused(RequestId request, Refusal reason, TimePoint earliest_completion, TimePoint now);
  void complete(const Completion& completion, TimePoint now);
  void refuse_new(const Request& request, Refusal reason, TimePoint earliest_completion, TimePoint now,
                  const std::string& detail = {});
  void withdraw_all(const std::function<bool(const Request&)>& which, Refusal reason, TimePoint now);
  void observe_pages(DeviceId device);
  // What was measured of it, or whether it counts, has changed.
  void timing_changed(DeviceId device, TimePoint now);
  // Refuses what has waited for lost devices for too long, and what targets leave no room for; notes when to look
  // again.
  void refuse_stranded(TimePoint now);
  void look_for_stranded_after(TimePoint now);
  // Whether targets leave no room for the model, now and at the last look.
  bool is_crowded_out(ModelId model) const;

  ControllerOptions options_;
  ActionSink& actions_;
  CompletionSink& completions_;
  std::vector<Observer*> observers_;
  Cluster cluster_;
  std::unique_ptr<Policy> policy_;
  std::optional<FailureDetector> failure_detector_;
  FairShare fair_share_;
  ServingAbility ability_;
  RequestTable requests_;
  const ProposalCheck check_;
  PipelineRuns runs_;
  std::unique_ptr<TaskRouter> tasks_;  // null: there has been none
  ActionTable actions_outstanding_;
  uint64_t next_action_ = 1;
  uint64_t next_sequence_ = 1;          // of requests
  uint32_t next_doubted_ = 0;           // device
  std::vector<TimePoint> next_trials_;  // by model: when an optional request is run next whatever is expected of it
  TimePoint next_stranded_ = TimePoint::infinite_future();
  std::vector<bool> crowded_out_;  // by ModelId: at the last look
  uint64_t proposals_rejected_ = 0;
  bool draining_ = false;
  TimePoint turn_now_;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_CONTROLLER_H_
