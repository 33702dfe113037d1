#include "serving/controller_loop.h"

#include "platform/clock.h"

namespace foliot {

ControllerLoop::ControllerLoop(const ControllerOptions& options, const Controller::PolicyFactory& make_policy,
                               ControllerInbox& inbox, ActionSink& actions, CompletionSink& completions)
    : controller_(options, make_policy, actions, completions),
      handler_(controller_),
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

void ControllerLoop::Handler::handle(Event::RemoveModel& remove, TimePoint now) {
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
  std::erase_if(removals_, [&](const Event::RemoveModel& removal) {
    if (!controller_.model_gone(removal.model)) return false;
    (*removal.gone)();
    return true;
  });
  return wake;
}

}  // namespace foliot
