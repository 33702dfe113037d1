#include "serving/controller_loop.h"

#include <set>
#include <string>
#include <utility>

#include "controller/targets.h"
#include "platform/clock.h"

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
      loop_({.thread = {.name = "controller"}}, inbox.events(), handler_) {}

ControllerLoop::~ControllerLoop() { stop(); }

Status ControllerLoop::start() { return loop_.start(); }
void ControllerLoop::stop() { loop_.stop(); }

void ControllerLoop::Handler::on_event(Event& event, TimePoint now) {
  std::visit([&](auto& what) { handle(what, now); }, event.what);
}

void ControllerLoop::Handler::handle(Event::LabelledRequest& labelled, TimePoint now) {
  if (labels_ != nullptr) labels_->on_label(labelled.request.id, std::move(labelled.label));
  controller_.on_request(labelled.request, now);
}

void ControllerLoop::Handler::handle(Event::AddModel& add, TimePoint now) {
  names_[add.model->id] = add.model->name;
  controller_.add_model(std::move(add.model), now);
  apply_targets(now);
}

void ControllerLoop::Handler::handle(Event::SetTargets& set, TimePoint now) {
  targets_ = std::move(set.targets);
  reported_.clear();
  apply_targets(now);
}

void ControllerLoop::Handler::handle(Event::Scale& scale, TimePoint now) {
  if (!scaled_) scaled_.emplace();
  scaled_->set(scale.autoscaler, *scale.targets);
  apply_targets(now);
}

// Those that can be set: a kind may be there only when a device of it has joined. An operator's go before
// autoscalers'.
void ControllerLoop::Handler::apply_targets(TimePoint now) {
  if (targets_ == nullptr && !scaled_) return;
  Targets targets = named_targets();
  if (scaled_) {
    for (const auto& [id, target] : scaled_->merged().models) {
      if (names_.contains(id) && can_set(id, target)) targets.models.emplace(id, target);
    }
  }
  const Status status = controller_.set_targets(targets, now);
  if (!status.ok()) report(status.message());
}

Targets ControllerLoop::Handler::named_targets() {
  Targets targets;
  if (targets_ == nullptr) return targets;
  std::set<std::string> unknown;
  for (const auto& [name, target] : *targets_) unknown.insert(name);
  for (const auto& [id, name] : names_) {
    const auto found = targets_->find(name);
    if (found == targets_->end()) continue;
    unknown.erase(name);
    if (can_set(id, found->second)) targets.models.emplace(id, found->second);
  }
  for (const std::string& name : unknown) report("targets of model '" + name + "': it is not served, so far");
  return targets;
}

bool ControllerLoop::Handler::can_set(ModelId model, const ModelTarget& target) {
  const Status status = check_targets(controller_.cluster(), Targets{{{model, target}}});
  if (!status.ok()) report(status.message());
  return status.ok();
}

void ControllerLoop::Handler::report(const std::string& line) {
  if (reported_.insert(line).second) target_report_(line);
}

void ControllerLoop::Handler::handle(Event::RemoveModel& remove, TimePoint now) {
  names_.erase(remove.model);
  if (scaled_) scaled_->forget(remove.model);
  controller_.remove_model(remove.model, now);
  removals_.push_back(std::move(remove));
}

// The device's one page is the model's.
void ControllerLoop::Handler::handle(Event::JoinDevice& join, TimePoint now) {
  routes_.set(join.device, *join.actions);
  controller_.join_device(join.device, 1, std::span(&join.resident, 1), now, join.kind);
  apply_targets(now);
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
