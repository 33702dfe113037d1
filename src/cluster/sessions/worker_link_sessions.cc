#include "cluster/sessions/worker_link_sessions.h"

#include <fmt/format.h>

#include <utility>

#include "cluster/sessions/answer_fetch.h"
#include "cluster/sessions/cluster_timeouts.h"
#include "cluster/transport/frame_handlers.h"

namespace foliot {

// ---- ControllerSession ----

Status WorkerLink::ControllerSession::on_frame(const Frame& frame, TimePoint now) {
  if (!is_obeyed()) return on_standby_frame(frame, now);
  switch (frame.type) {
    case MessageType::kVisits: return on_visits(frame);
    case MessageType::kAction: return on_action(frame, now);
    case MessageType::kDiscard: return on_discard(frame);
    case MessageType::kPong: return on_pong(frame, now);
    case MessageType::kWelcome: return on_welcome(frame, now);
    case MessageType::kWorkers: return on_workers(frame);
    case MessageType::kNaming: return on_naming(frame);
    case MessageType::kRelease: return on_release(frame);
    case MessageType::kGoodbye: return on_goodbye(frame);
    default: return unexpected(frame);
  }
}

Status WorkerLink::ControllerSession::on_standby_frame(const Frame& frame, TimePoint now) {
  switch (frame.type) {
    case MessageType::kPong: return on_pong(frame, now);
    case MessageType::kLeadership: {
      Leadership leadership;
      FOLIOT_RETURN_IF_ERROR(decode(frame, leadership));
      return link_.obey(*this, leadership.epoch, now);
    }
    case MessageType::kGoodbye: return on_goodbye(frame);
    default: return unexpected(frame);
  }
}

void WorkerLink::ControllerSession::on_close(const Status& reason, TimePoint now) {
  std::erase(link_.controllers_, this);
  const bool was_obeyed = is_obeyed();
  if (was_obeyed) link_.lose_controller(now);
  if (!reason.ok()) {
    link_.complain(fmt::format("the controller at {} {}: {}", connection_.peer(),
                               was_obeyed && devices_.empty() ? "does not take this worker yet" : "is lost",
                               reason.message()));
  }
}

Status WorkerLink::ControllerSession::on_pong(const Frame& frame, TimePoint now) {
  Pong pong;
  FOLIOT_RETURN_IF_ERROR(decode(frame, pong));
  return host_clock_.on_pong(pong, now);
}

Status WorkerLink::ControllerSession::on_welcome(const Frame& frame, TimePoint now) {
  Welcome welcome;
  FOLIOT_RETURN_IF_ERROR(decode(frame, welcome));
  if (!registered_ || this->welcome() || welcome.devices.size() != link_.workers_.size()) {
    return Status::invalid_argument("a WELCOME that does not fit the registration");
  }
  devices_ = welcome.devices;
  return link_.on_welcome(welcome, now);
}

Status WorkerLink::ControllerSession::on_workers(const Frame& frame) {
  Workers workers;
  FOLIOT_RETURN_IF_ERROR(decode(frame, workers));
  if (!welcome()) return unexpected(frame);
  link_.on_workers(workers);
  return Status();
}

Status WorkerLink::ControllerSession::on_naming(const Frame& frame) {
  Naming naming;
  FOLIOT_RETURN_IF_ERROR(decode(frame, naming));
  return welcome() ? link_.models_.name(naming.model, naming.name) : unexpected(frame);
}

Status WorkerLink::ControllerSession::on_release(const Frame& frame) {
  Release release;
  FOLIOT_RETURN_IF_ERROR(decode(frame, release));
  return welcome() ? link_.models_.release(release.model) : unexpected(frame);
}

Status WorkerLink::ControllerSession::on_visits(const Frame& frame) {
  if (visits_) return Status::invalid_argument("VISITS after another");
  return decode(frame, visits_.emplace());
}

Status WorkerLink::ControllerSession::on_discard(const Frame& frame) {
  Discard discard;
  FOLIOT_RETURN_IF_ERROR(decode(frame, discard));
  link_.stage_outputs_.discard(discard.visit);
  return Status();
}

Status WorkerLink::ControllerSession::on_action(const Frame& frame, TimePoint now) {
  Action action;
  FOLIOT_RETURN_IF_ERROR(decode(frame, action));
  const Visits visits = std::exchange(visits_, std::nullopt).value_or(Visits{action.id, {}});
  if (visits.action != action.id) return Status::invalid_argument("an ACTION after the VISITS of another");
  const std::optional<DeviceId> device = own(action.device);
  if (!device) return Status::invalid_argument("an ACTION for another device");
  action.earliest = host_clock_.offset().to_own(action.earliest);
  action.latest = host_clock_.offset().to_own(action.latest);
  return link_.on_action(action, *device, visits, now);
}

// ---- ClientSession ----

void WorkerLink::ClientSession::check(TimePoint now) {
  constexpr Duration kSilence = kClusterTimeouts.frontend_silence;
  if (now - last_message_ > kSilence)
    connection_.request_close(Status::unavailable(fmt::format("no message for {:.0f} s", kSilence.to_seconds())));
}

Status WorkerLink::ClientSession::on_frame(const Frame& frame, TimePoint now) {
  last_message_ = now;
  switch (frame.type) {
    case MessageType::kInputs: return on_inputs(frame, now);
    case MessageType::kConsumed: return on_consumed(frame);
    case MessageType::kPing: return on_ping(frame, connection_, now);
    case MessageType::kAttach: return on_attach(frame, now);
    case MessageType::kGoodbye: return on_goodbye(frame);
    default: return unexpected(frame);
  }
}

void WorkerLink::ClientSession::on_close(const Status& reason, TimePoint now) {
  std::erase(link_.sessions_, this);
  link_.on_detach(*this, now);
  if (!reason.ok()) {
    link_.watch_.log(Severity::kWarning,
                     fmt::format("the front end at {} is gone: {}", connection_.peer(), reason.message()));
  }
}

Status WorkerLink::ClientSession::on_attach(const Frame& frame, TimePoint now) {
  Attach attach;
  FOLIOT_RETURN_IF_ERROR(decode(frame, attach));
  if (attach_) return Status::invalid_argument("a client attaches once");
  attach_ = attach;
  link_.on_attach(*this, attach, now);
  return Status();
}

Status WorkerLink::ClientSession::on_inputs(const Frame& frame, TimePoint now) {
  Inputs inputs;
  FOLIOT_RETURN_IF_ERROR(decode(frame, inputs));
  if (!number_ || inputs.request.value() > kOwnIdMax) return Status::invalid_argument("INPUTS without a FETCH");
  return link_.on_inputs(*number_, inputs, now);
}

Status WorkerLink::ClientSession::on_consumed(const Frame& frame) {
  Consumed consumed;
  FOLIOT_RETURN_IF_ERROR(decode(frame, consumed));
  if (!number_) return Status::invalid_argument("a CONSUMED without an ATTACH");
  link_.held_.consume(consumed.payload, *number_, consumed.consumers);
  return Status();
}

// ---- HolderSession ----

Status WorkerLink::HolderSession::on_frame(const Frame& frame, TimePoint now) {
  switch (frame.type) {
    case MessageType::kInputs: return on_inputs(frame, now);
    case MessageType::kPong: return on_pong(frame, now);
    case MessageType::kGoodbye: return on_goodbye(frame);
    default: return unexpected(frame);
  }
}

void WorkerLink::HolderSession::on_close(const Status& reason, TimePoint /*now*/) {
  const auto place = link_.holders_.find(address());
  if (place == link_.holders_.end() || place->second != this) return;
  place->second = nullptr;
  link_.lost_holders_.push_back(address());
  if (!reason.ok()) {
    link_.watch_.log(Severity::kWarning,
                     fmt::format("the worker at {} is lost: {}", connection_.peer(), reason.message()));
  }
}

Status WorkerLink::HolderSession::on_inputs(const Frame& frame, TimePoint now) {
  Inputs inputs;
  FOLIOT_RETURN_IF_ERROR(decode(frame, inputs));
  link_.on_held_inputs(address(), inputs, now);
  return Status();
}

Status WorkerLink::HolderSession::on_pong(const Frame& frame, TimePoint now) {
  Pong pong;
  FOLIOT_RETURN_IF_ERROR(decode(frame, pong));
  return clock_.on_pong(pong, now);
}

// ---- FetcherSession ----

Status WorkerLink::FetcherSession::on_frame(const Frame& frame, TimePoint now) {
  switch (frame.type) {
    case MessageType::kFetch:
      return answer_fetch(frame, connection_, [this](const Fetch& fetch) {
        InputSource source{.payload = fetch.payload, .tensors = fetch.tensors};
        if (fetch.source > 0) source.slot = fetch.source - 1;
        return link_.held(fetch.request, source);
      });
    case MessageType::kPing: return on_ping(frame, connection_, now);
    case MessageType::kGoodbye: return on_goodbye(frame);
    default: return unexpected(frame);
  }
}

void WorkerLink::FetcherSession::on_close(const Status& reason, TimePoint /*now*/) {
  if (!reason.ok()) {
    link_.watch_.log(Severity::kWarning,
                     fmt::format("the worker at {} is gone: {}", connection_.peer(), reason.message()));
  }
}

}  // namespace foliot
