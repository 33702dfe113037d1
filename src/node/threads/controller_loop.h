// ControllerLoop: the controller as an event loop, driven by a ControllerInbox. It has volunteers: while it is idle, an
// executor's thread that brings outcomes and has nothing else to do has its turn.
//
// Threading: belongs to its owner; the controller and what it calls belong to the loop, one thread at a time, from
// start() on. "The loop's thread" below is that one. It may be an executor's, so nothing that is called waits for
// another thread.
#ifndef FOLIOT_NODE_THREADS_CONTROLLER_LOOP_H_
#define FOLIOT_NODE_THREADS_CONTROLLER_LOOP_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/controller/controller.h"
#include "control/controller/wanted_targets.h"
#include "foundation/core/call_label.h"
#include "foundation/core/ports.h"
#include "foundation/platform/event_loop.h"
#include "node/threads/controller_inbox.h"

namespace foliot {

// ActionRoutes: passes each action on to its device: one that joined by an event, or the
// sink of all others.
//
// Threading: one thread.
class ActionRoutes : public ActionSink {
 public:
  // `others` outlives this.
  explicit ActionRoutes(ActionSink& others) : others_(others) {}
  // Until clear() of that device, `to` outlives this.
  void set(DeviceId device, ActionSink& to);
  void clear(DeviceId device) { joined_[device.value()] = nullptr; }
  void send(const Action& action) override;

 private:
  ActionSink& others_;
  std::vector<ActionSink*> joined_;  // by device; null: none
};

using TurnWatch = std::function<void(Duration decision)>;
using TargetReport = std::function<void(const std::string& line)>;

class ControllerLoop {
 public:
  // All references outlive the loop.
  ControllerLoop(const ControllerOptions& options, const Controller::PolicyFactory& make_policy, ControllerInbox& inbox,
                 ActionSink& actions, CompletionSink& completions);
  ~ControllerLoop();

  // Before start().
  Controller& controller() { return controller_; }
  // Before start(): called on the loop's thread after each turn, with how long the policy
  // took to decide.
  void set_turn_watch(TurnWatch watch) { handler_.set_turn_watch(std::move(watch)); }
  // Before start(): receives the labels of requests, with those added before; outlives the loop.
  void add_label_sink(CallLabelSink& labels) { handler_.add_label_sink(labels); }
  // Before start(): called on the loop's thread with targets that cannot be set, and why.
  void set_target_report(TargetReport report) { handler_.set_target_report(std::move(report)); }
  Status start();
  // Handles what has been posted, then ends.
  void stop();

 private:
  using Event = ControllerEvent;

  class Handler : public EventHandler<Event> {
   public:
    Handler(Controller& controller, ActionRoutes& routes) : controller_(controller), routes_(routes) {}
    void on_event(Event& event, TimePoint now) override;
    TimePoint on_turn_end(TimePoint now) override;
    void set_turn_watch(TurnWatch watch) { turn_watch_ = std::move(watch); }
    void add_label_sink(CallLabelSink& labels) { labels_.push_back(&labels); }
    void set_target_report(TargetReport report) { target_report_ = std::move(report); }

   private:
    TimePoint turn(TimePoint now);
    void handle(Event::Drain&, TimePoint now) { controller_.drain(now); }
    void handle(Request& request, TimePoint now) { controller_.on_request(request, now); }
    void handle(Event::LabelledRequest& labelled, TimePoint now);
    void handle(Event::Cancel& cancel, TimePoint now) { controller_.on_cancel(cancel.id, cancel.reason, now); }
    void handle(Event::PooledOutcome& outcome, TimePoint now) { controller_.on_outcome(*outcome, now); }
    void handle(Event::AddModel& add, TimePoint now);
    void handle(Event::ExtendModel& extend, TimePoint /*now*/) { controller_.extend_model(std::move(extend.model)); }
    void handle(Event::RemoveModel& remove, TimePoint now);
    void handle(Event::AddPipeline& add, TimePoint /*now*/) { controller_.add_pipeline(std::move(add.pipeline)); }
    void handle(Event::RemovePipeline& remove, TimePoint /*now*/) { controller_.remove_pipeline(remove.pipeline); }
    void handle(Event::AddTask& add, TimePoint /*now*/) { controller_.add_task(std::move(add.task)); }
    void handle(Event::RemoveTask& remove, TimePoint /*now*/) { controller_.remove_task(remove.task); }
    void handle(Event::Scale& scale, TimePoint now);
    void handle(Event::JoinDevice& join, TimePoint now);
    void handle(Event::LoseDevice& lose, TimePoint now);
    void handle(Event::SetTargets& set, TimePoint now);

    Controller& controller_;
    ActionRoutes& routes_;
    TurnWatch turn_watch_;  // empty: none
    std::vector<CallLabelSink*> labels_;
    std::vector<Event::RemoveModel> removals_;
    TargetReport target_report_ = [](const std::string&) {};
    WantedTargets wanted_{[this](const std::string& line) { target_report_(line); }};
  };

  ActionRoutes routes_;
  Controller controller_;
  Handler handler_;
  EventLoop<Event> loop_;
};

}  // namespace foliot

#endif  // FOLIOT_NODE_THREADS_CONTROLLER_LOOP_H_
