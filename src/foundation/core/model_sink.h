// ModelSink: the part that plans for the models that a worker can run: the controller
// of this process, or one at the other end of a link.
#ifndef FOLIOT_FOUNDATION_CORE_MODEL_SINK_H_
#define FOLIOT_FOUNDATION_CORE_MODEL_SINK_H_

#include <functional>
#include <memory>

#include "foundation/base/status.h"
#include "foundation/core/ids.h"
#include "foundation/core/model_info.h"

namespace foliot {

// Threading: any thread, one at a time for one model.
class ModelSink {
 public:
  virtual ~ModelSink() = default;

  // Why such a model could not be run, though the device could.
  virtual Status check(const ModelInfo& model) const = 0;
  // It can be run from now on. No other model has its id.
  virtual void add_model(std::shared_ptr<const ModelInfo> model) = 0;
  // Whether a model may be added with some of its batch sizes, and extended later.
  virtual bool takes_parts() const = 0;
  // REQUIRES: takes_parts(); `model` is what was added, but for larger batch sizes behind
  // those that it had.
  virtual void extend_model(std::shared_ptr<const ModelInfo> model) = 0;
  // It is not to be run any more. `gone` is called, from any thread, when nothing of it
  // is left: no action under way, no page that holds it.
  virtual void remove_model(ModelId model, std::function<void()> gone) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_MODEL_SINK_H_
