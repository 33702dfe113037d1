// ControllerLoop: the controller on a thread of its own. Turns the ports' calls,
// from whichever thread they come, into events of its loop.
#ifndef FOLIOT_SERVING_CONTROLLER_LOOP_H_
#define FOLIOT_SERVING_CONTROLLER_LOOP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "controller/controller.h"
#include "core/call_label.h"
#include "core/model_sink.h"
#include "core/ports.h"
#include "platform/event_loop.h"

namespace foliot {

using TurnWatch = std::function<void(Duration decision)>;

// Threading: any thread; calls marked so belong to the owner.
class ControllerLoop : public LabelledRequestSink, public OutcomeSink, public ModelSink {
 public:
  // Owner. `requests_max`: how many requests the front end has in flight at most;
  // with that bound the inbox can never be full.
  ControllerLoop(const ControllerOptions& options, const Controller::PolicyFactory& make_policy, ActionSink& actions,
                 CompletionSink& completions, uint32_t requests_max);
  ~ControllerLoop() override;

  // Owner, before start().
  Controller& controller() { return controller_; }
  // Owner, before start(): called on the loop's thread after each turn, with how long
  // the policy took to decide.
  void set_turn_watch(TurnWatch watch) { handler_.set_turn_watch(std::move(watch)); }
  // Owner, before start(): receives the labels of requests; outlives the loop. Without
  // it labels are dropped.
  void set_label_sink(CallLabelSink& labels) { handler_.set_label_sink(labels); }
  Status start();
  // Owner. Handles what has been posted, then ends.
  void stop();

  void submit(const Request& request) override;
  void submit_labelled(const Request& request, std::shared_ptr<const CallLabel> label) override;
  void cancel(RequestId request, Refusal reason) override;
  void report(const Outcome& outcome) override;
  Status check(const ModelInfo& /*model*/) const override { return Status(); }
  void add_model(std::shared_ptr<const ModelInfo> model) override;
  bool takes_parts() const override { return true; }
  void extend_model(std::shared_ptr<const ModelInfo> model) override;
  void remove_model(ModelId model, std::function<void()> gone) override;
  void drain();

 private:
  struct LabelledRequest {
    Request request;
    std::shared_ptr<const CallLabel> label;
  };
  struct Cancel {
    RequestId id;
    Refusal reason;
  };
  struct AddModel {
    std::shared_ptr<const ModelInfo> model;
  };
  struct ExtendModel {
    std::shared_ptr<const ModelInfo> model;
  };
  struct RemoveModel {
    ModelId model;
    std::shared_ptr<std::function<void()>> gone;
  };
  struct Drain {};
  using Event = std::variant<Drain, Request, LabelledRequest, Cancel, Outcome, AddModel, ExtendModel, RemoveModel>;

  class Handler : public EventHandler<Event> {
   public:
    explicit Handler(Controller& controller) : controller_(controller) {}
    void on_event(Event& event, TimePoint now) override;
    TimePoint on_turn_end(TimePoint now) override;
    void set_turn_watch(TurnWatch watch) { turn_watch_ = std::move(watch); }
    void set_label_sink(CallLabelSink& labels) { labels_ = &labels; }

   private:
    TimePoint turn(TimePoint now);
    void handle(Drain&, TimePoint now) { controller_.drain(now); }
    void handle(Request& request, TimePoint now) { controller_.on_request(request, now); }
    void handle(LabelledRequest& labelled, TimePoint now) {
      if (labels_ != nullptr) labels_->on_label(labelled.request.id, std::move(labelled.label));
      controller_.on_request(labelled.request, now);
    }
    void handle(Cancel& cancel, TimePoint now) { controller_.on_cancel(cancel.id, cancel.reason, now); }
    void handle(Outcome& outcome, TimePoint now) { controller_.on_outcome(outcome, now); }
    void handle(AddModel& add, TimePoint now) { controller_.add_model(std::move(add.model), now); }
    void handle(ExtendModel& extend, TimePoint /*now*/) { controller_.extend_model(std::move(extend.model)); }
    void handle(RemoveModel& remove, TimePoint now);

    Controller& controller_;
    TurnWatch turn_watch_;  // empty: none
    CallLabelSink* labels_ = nullptr;
    std::vector<RemoveModel> removals_;
  };

  void post(Event event);

  Controller controller_;
  Handler handler_;
  EventLoop<Event> loop_;
};

}  // namespace foliot

#endif  // FOLIOT_SERVING_CONTROLLER_LOOP_H_
