// Observer: an interface that sees everything that the controller does, and changes
// nothing. Metrics, event logs, traces and the checkers of the simulator are observers.
//
// Threading: all calls come from the controller's loop; they must not block.
#ifndef FOLIOT_FOUNDATION_CORE_OBSERVER_H_
#define FOLIOT_FOUNDATION_CORE_OBSERVER_H_

#include "foundation/core/action.h"
#include "foundation/core/device_state.h"
#include "foundation/core/model_info.h"
#include "foundation/core/model_target.h"
#include "foundation/core/pipeline_info.h"
#include "foundation/core/request.h"
#include "foundation/core/task_info.h"

namespace foliot {

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_model(const ModelInfo& /*model*/) {}
  // It can be run in more batch sizes or by more kinds of device.
  virtual void on_model_extended(const ModelInfo& /*model*/) {}
  // No device holds it any more, and no request asks for it; its id may become another's.
  virtual void on_model_removed(ModelId /*model*/, TimePoint /*now*/) {}
  // What should be of the model is another now; a model that is removed has no target.
  virtual void on_target(ModelId /*model*/, const ModelTarget& /*target*/, TimePoint /*now*/) {}
  // A pipeline is served: requests may name it. With each change of its models it is another one.
  virtual void on_pipeline(const PipelineInfo& /*pipeline*/) {}
  virtual void on_pipeline_removed(PipelineId /*pipeline*/) {}
  // A task is served: requests may name it.
  virtual void on_task(const TaskInfo& /*task*/) {}
  virtual void on_task_removed(ServedTaskId /*task*/) {}
  // Of a task: `model` is the variant that was chosen or, if it is refused because none could be,
  // the one that comes nearest.
  virtual void on_request(const Request& /*request*/, TimePoint /*now*/) {}
  virtual void on_action(const Action& /*action*/, TimePoint /*now*/) {}
  // `action` is the one that the outcome is of.
  virtual void on_outcome(const Action& /*action*/, const Outcome& /*outcome*/, TimePoint /*now*/) {}
  virtual void on_completion(const Completion& /*completion*/, TimePoint /*now*/) {}
  // A request for a pipeline has come; the visits of its stages are requests of their own
  // (foundation/core/stage_visit.h). `pipeline` null: there is none with this id, any more.
  virtual void on_run(const Request& /*request*/, const PipelineInfo* /*pipeline*/, TimePoint /*now*/) {}
  virtual void on_run_over(const Completion& /*completion*/, TimePoint /*now*/) {}
  // Before the outcomes (kLost) of the actions of a lost device.
  virtual void on_device(const DeviceChange& /*change*/, TimePoint /*now*/) {}
  // How long before a deadline an EXEC of the device has to end, and how far ahead the
  // device is given work, as measured by now.
  virtual void on_timing(DeviceId /*device*/, Duration /*margin*/, Duration /*lookahead*/, TimePoint /*now*/) {}
  virtual void on_pages(DeviceId /*device*/, uint32_t /*used*/, uint32_t /*total*/) {}
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_OBSERVER_H_
