// ControllerInbox: the ports of a controller that runs on a thread of its own: turns their
// calls, from any thread, into events of its loop. It exists before the loop, so that
// front end and worker can be made with it, and the controller with them.
//
// Threading: any thread.
#ifndef FOLIOT_NODE_THREADS_CONTROLLER_INBOX_H_
#define FOLIOT_NODE_THREADS_CONTROLLER_INBOX_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "control/controller/scaled_targets.h"
#include "control/controller/targets.h"
#include "foundation/core/call_label.h"
#include "foundation/core/model_sink.h"
#include "foundation/core/pipeline_sink.h"
#include "foundation/core/ports.h"
#include "foundation/core/task_sink.h"
#include "foundation/platform/event_inbox.h"
#include "foundation/platform/slot_pool.h"
#include "node/files/target_file.h"

namespace foliot {

// What a controller's loop handles.
struct ControllerEvent {
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
  struct AddPipeline {
    std::shared_ptr<const PipelineInfo> pipeline;
  };
  struct RemovePipeline {
    PipelineId pipeline;
  };
  struct AddTask {
    std::shared_ptr<const TaskInfo> task;
  };
  struct RemoveTask {
    ServedTaskId task;
  };
  struct Scale {
    Autoscaler autoscaler;
    std::shared_ptr<const Targets> targets;
  };
  struct JoinDevice {
    DeviceId device;
    std::string kind;
    ModelId resident;
    ActionSink* actions;
  };
  struct LoseDevice {
    DeviceId device;
    std::shared_ptr<std::function<void()>> lost;
  };
  struct SetTargets {
    std::shared_ptr<const NamedTargets> targets;
  };
  struct Drain {};
  // An outcome is as large as ten requests.
  using PooledOutcome = SlotPool<Outcome>::Held;
  std::variant<Drain, Request, LabelledRequest, Cancel, PooledOutcome, AddModel, ExtendModel, RemoveModel, AddPipeline,
               RemovePipeline, AddTask, RemoveTask, Scale, JoinDevice, LoseDevice, SetTargets>
      what;
};

class ControllerInbox : public LabelledRequestSink,
                        public OutcomeSink,
                        public ModelSink,
                        public PipelineSink,
                        public TaskSink {
 public:
  // `requests_max`: how many requests the front end has in flight at most; `devices`: how
  // many send outcomes, beside those that join_device() names, of which there are at most
  // kJoinedDevicesMax at a time. With these bounds the inbox can never be full.
  explicit ControllerInbox(uint32_t requests_max, size_t devices = 1);
  static constexpr size_t kJoinedDevicesMax = 1024;

  void submit(const Request& request) override;
  void submit_labelled(const Request& request, std::shared_ptr<const CallLabel> label) override;
  void cancel(RequestId request, Refusal reason) override;
  void report(const Outcome& outcome) override;
  Status check(const ModelInfo& /*model*/) const override { return Status(); }
  void add_model(std::shared_ptr<const ModelInfo> model) override;
  bool takes_parts() const override { return true; }
  void extend_model(std::shared_ptr<const ModelInfo> model) override;
  void remove_model(ModelId model, std::function<void()> gone) override;
  void add_pipeline(std::shared_ptr<const PipelineInfo> pipeline) override;
  void remove_pipeline(PipelineId pipeline) override;
  void add_task(std::shared_ptr<const TaskInfo> task) override;
  void remove_task(ServedTaskId task) override;
  // What an autoscaler wants of the models, in place of what it wanted before. Models that have left are passed
  // over. Not more often than ten times a second.
  void scale(Autoscaler autoscaler, Targets targets);
  // A device of one page that holds `resident` joins; it gets its actions by `actions`.
  // REQUIRES: Controller::join_device()'s; the model was added before.
  void join_device(DeviceId device, std::string kind, ModelId resident, ActionSink& actions);
  // A device that has joined is lost: nothing of it is reported any more. `lost` is called, on
  // the loop's thread, when nothing is sent to it any more.
  void lose_device(DeviceId device, std::function<void()> lost);
  // What an operator wants of the models from now on, of those that come later too, in place of what
  // was set before. Of these models nothing is scaled.
  void set_targets(std::shared_ptr<const NamedTargets> targets);
  void drain();

  EventInbox<ControllerEvent>& events() { return events_; }

 private:
  template <typename What>
  void post(What&& what);

  SlotPool<Outcome> outcomes_;
  EventInbox<ControllerEvent> events_;
};

}  // namespace foliot

#endif  // FOLIOT_NODE_THREADS_CONTROLLER_INBOX_H_
