// TargetChange: targets of some models, in force from an instant of a simulation on.
#ifndef FOLIOT_VIRTUAL_SIMULATION_TARGET_CHANGE_H_
#define FOLIOT_VIRTUAL_SIMULATION_TARGET_CHANGE_H_

#include <string>
#include <vector>

#include "foundation/base/time.h"
#include "foundation/core/model_target.h"

namespace foliot {

struct TargetChange {
  Duration at;                      // since the beginning of the run
  std::vector<std::string> models;  // names of groups; empty: all
  // Of each model, in place of the one that it had.
  ModelTarget target;
};

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_SIMULATION_TARGET_CHANGE_H_
