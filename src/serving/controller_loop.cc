#include "serving/controller_loop.h"

#include "base/check.h"
#include "platform/clock.h"

namespace foliot {
namespace {

// Beside a submit and two cancels (by its client, and for another) of each request in
// flight: outcomes, of which there are as many as actions outstanding, and changes of
// models.
constexpr size_t kOtherEvents = 4096;

}  // namespace

ControllerLoop::ControllerLoop(const ControllerOptions& options, const Controller::PolicyFactory& make_policy,
                               ActionSink& actions, CompletionSink& completions, uint32_t requests_max)
    : controller_(options, make_policy, actions, completions),
      handler_(controller_),
      loop_({.thread = {.name = "controller"}, .inbox_capacity = size_t{3} * requests_max + kOtherEvents}, handler_) {}

ControllerLoop::~ControllerLoop() { stop(); }

Status ControllerLoop::start() { return loop_.start(); }
void ControllerLoop::stop() { loop_.stop(); }

void ControllerLoop::submit(const Request& request) { post(request); }
void ControllerLoop::submit_labelled(const Request& request, std::shared_ptr<const CallLabel> label) {
  label == nullptr ? post(request) : post(LabelledRequest{request, std::move(label)});
}
void ControllerLoop::cancel(RequestId request, Refusal reason) { post(Cancel{request, reason}); }
void ControllerLoop::report(const Outcome& outcome) { post(outcome); }
void ControllerLoop::add_model(std::shared_ptr<const ModelInfo> model) { post(AddModel{std::move(model)}); }
void ControllerLoop::extend_model(std::shared_ptr<const ModelInfo> model) { post(ExtendModel{std::move(model)}); }
void ControllerLoop::remove_model(ModelId model, std::function<void()> gone) {
  post(RemoveModel{model, std::make_shared<std::function<void()>>(std::move(gone))});
}
void ControllerLoop::drain() { post(Drain{}); }

void ControllerLoop::post(Event event) { FOLIOT_CHECK(loop_.post(std::move(event))); }

void ControllerLoop::Handler::on_event(Event& event, TimePoint now) {
  std::visit([&](auto& e) { handle(e, now); }, event);
}

void ControllerLoop::Handler::handle(RemoveModel& remove, TimePoint now) {
  controller_.remove_model(remove.model, now);
  removals_.push_back(std::move(remove));
}

TimePoint ControllerLoop::Handler::turn(TimePoint now) {
  if (!turn_watch_) return controller_.turn(now);
  const TimePoint begin = monotonic_now();
  const TimePoint wake = controller_.turn(now);
  turn_watch_(monotonic_now() - begin);
  return wake;
}

TimePoint ControllerLoop::Handler::on_turn_end(TimePoint now) {
  const TimePoint wake = turn(now);
  std::erase_if(removals_, [&](const RemoveModel& removal) {
    if (!controller_.model_gone(removal.model)) return false;
    (*removal.gone)();
    return true;
  });
  return wake;
}

}  // namespace foliot
