#include "node/threads/controller_inbox.h"

#include <utility>

#include "foundation/base/check.h"

namespace foliot {
namespace {

// Beside a submit and two cancels (by its client, and for another) of each request in
// flight: outcomes, of which there are as many as actions outstanding, and changes of
// models.
constexpr size_t kOtherEvents = 4096;
// Of a device that joined: outcomes of actions of one model.
constexpr size_t kEventsOfJoinedDevice = 128;

size_t outcomes_max(size_t devices) {
  return devices * kOtherEvents + ControllerInbox::kJoinedDevicesMax * kEventsOfJoinedDevice;
}

}  // namespace

ControllerInbox::ControllerInbox(uint32_t requests_max, size_t devices)
    : outcomes_(static_cast<uint32_t>(outcomes_max(devices))),
      events_(size_t{3} * requests_max + outcomes_max(devices)) {}

template <typename What>
void ControllerInbox::post(What&& what) {
  FOLIOT_CHECK(events_.post(ControllerEvent{std::forward<What>(what)}));
}

void ControllerInbox::submit(const Request& request) { post(request); }

void ControllerInbox::submit_labelled(const Request& request, std::shared_ptr<const CallLabel> label) {
  label == nullptr ? post(request) : post(ControllerEvent::LabelledRequest{request, std::move(label)});
}

void ControllerInbox::cancel(RequestId request, Refusal reason) { post(ControllerEvent::Cancel{request, reason}); }

void ControllerInbox::report(const Outcome& outcome) {
  ControllerEvent::PooledOutcome pooled = outcomes_.make(outcome);
  FOLIOT_CHECK(pooled);
  post(std::move(pooled));
}

void ControllerInbox::add_model(std::shared_ptr<const ModelInfo> model) {
  post(ControllerEvent::AddModel{std::move(model)});
}

void ControllerInbox::extend_model(std::shared_ptr<const ModelInfo> model) {
  post(ControllerEvent::ExtendModel{std::move(model)});
}

void ControllerInbox::remove_model(ModelId model, std::function<void()> gone) {
  post(ControllerEvent::RemoveModel{model, std::make_shared<std::function<void()>>(std::move(gone))});
}

void ControllerInbox::add_pipeline(std::shared_ptr<const PipelineInfo> pipeline) {
  post(ControllerEvent::AddPipeline{std::move(pipeline)});
}

void ControllerInbox::remove_pipeline(PipelineId pipeline) { post(ControllerEvent::RemovePipeline{pipeline}); }

void ControllerInbox::add_task(std::shared_ptr<const TaskInfo> task) {
  post(ControllerEvent::AddTask{std::move(task)});
}

void ControllerInbox::remove_task(ServedTaskId task) { post(ControllerEvent::RemoveTask{task}); }

void ControllerInbox::scale(Autoscaler autoscaler, Targets targets) {
  post(ControllerEvent::Scale{autoscaler, std::make_shared<const Targets>(std::move(targets))});
}

void ControllerInbox::join_device(DeviceId device, std::string kind, ModelId resident, ActionSink& actions) {
  post(ControllerEvent::JoinDevice{device, std::move(kind), resident, &actions});
}

void ControllerInbox::lose_device(DeviceId device, std::function<void()> lost) {
  post(ControllerEvent::LoseDevice{device, std::make_shared<std::function<void()>>(std::move(lost))});
}

void ControllerInbox::set_targets(std::shared_ptr<const NamedTargets> targets) {
  post(ControllerEvent::SetTargets{std::move(targets)});
}

void ControllerInbox::drain() { post(ControllerEvent::Drain{}); }

}  // namespace foliot
