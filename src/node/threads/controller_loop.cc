#include "node/threads/controller_loop.h"

#include <string>
#include <utility>

#include "foundation/platform/clock.h"

namespace foliot {

void ActionRoutes::set(DeviceId device, ActionSink& to) {
  if (device.value() >= joined_.size()) joined_.resize(device.value() + 1, nullptr);
  joined_[device.value()] = &to;
}

void ActionRoutes::send(const Action& action) {
  const uint32_t device = action.device.value();
  ActionSink* const joined = device < joined_.size() ? joined_[device] : nullptr;
  (joined == nullptr ? others_ : *joined).send(action);
}

ControllerLoop::ControllerLoop(const ControllerOptions& options, const Controller::PolicyFactory& make_policy,
                               ControllerInbox& inbox, ActionSink& actions, CompletionSink& completions)
    : routes_(actions),
      controller_(options, make_policy, routes_, completions),
      handler_(controller_, routes_),
      loop_({.thread = {.name = "controller"}, .has_volunteers = true}, inbox.events(), handler_) {}

ControllerLoop::~ControllerLoop() { stop(); }

Status ControllerLoop::start() { return loop_.start(); }
void ControllerLoop::stop() { loop_.stop(); }

void ControllerLoop::Handler::on_event(Event& event, TimePoint now) {
  std::visit([&](auto& what) { handle(what, now); }, event.what);
}

void ControllerLoop::Handler::handle(Event::LabelledRequest& labelled, TimePoint now) {
  for (CallLabelSink* const labels : labels_) labels->on_label(labelled.request.id, labelled.label);
  controller_.on_request(labelled.request, now);
}

void ControllerLoop::Handler::handle(Event::AddModel& add, TimePoint now) {
  controller_.add_model(std::move(add.model), now);
  wanted_.apply(controller_, now);
}

void ControllerLoop::Handler::handle(Event::SetTargets& set, TimePoint now) {
  wanted_.set_named(std::move(set.targets));
  wanted_.apply(controller_, now);
}

void ControllerLoop::Handler::handle(Event::Scale& scale, TimePoint now) {
  wanted_.scale(scale.autoscaler, *scale.targets);
  wanted_.apply(controller_, now);
}

void ControllerLoop::Handler::handle(Event::RemoveModel& remove, TimePoint now) {
  wanted_.forget(remove.model);
  controller_.remove_model(remove.model, now);
  removals_.push_back(std::move(remove));
}

// The device's one page is the model's.
void ControllerLoop::Handler::handle(Event::JoinDevice& join, TimePoint now) {
  routes_.set(join.device, *join.actions);
  controller_.join_device(join.device, 1, std::span(&join.resident, 1), now, join.kind);
  wanted_.apply(controller_, now);
}

void ControllerLoop::Handler::handle(Event::LoseDevice& lose, TimePoint now) {
  controller_.lose_device(lose.device, DeviceTrouble::kLeft, now);
  routes_.clear(lose.device);
  (*lose.lost)();
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
  std::erase_if(removals_, [&](const Event::RemoveModel& removal) {
    if (!controller_.model_gone(removal.model)) return false;
    (*removal.gone)();
    return true;
  });
  return wake;
}

}  // namespace foliot
