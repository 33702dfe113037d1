// ScaledTargets: what several autoscalers want of the models, as one.
//
// Each sets its own targets as a whole. Of a model that more than one wants, the most copies count that one of them
// wants at least: each sees all that comes for the model. Kinds hold that any of them names. An operator's targets go
// before all of these, which is left to the part that applies them.
//
// Threading: one owner.
#ifndef FOLIOT_CONTROL_CONTROLLER_SCALED_TARGETS_H_
#define FOLIOT_CONTROL_CONTROLLER_SCALED_TARGETS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "control/controller/targets.h"
#include "foundation/core/ids.h"

namespace foliot {

enum class Autoscaler : uint8_t { kTasks, kPipelines };

class ScaledTargets {
 public:
  void set(Autoscaler autoscaler, Targets targets);
  // The model has left. Its id may be another's soon.
  void forget(ModelId model);
  Targets merged() const;

 private:
  static constexpr size_t kAutoscalers = static_cast<size_t>(Autoscaler::kPipelines) + 1;
  std::array<Targets, kAutoscalers> targets_;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_SCALED_TARGETS_H_
