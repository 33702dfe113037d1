// KeptWeights: what a WeightTable knows of a user, while the user is not in memory.
#ifndef FOLIOT_PERSONAL_KEPT_WEIGHTS_H_
#define FOLIOT_PERSONAL_KEPT_WEIGHTS_H_

#include <cstdint>
#include <vector>

#include "personal/running_loss.h"

namespace foliot {

struct KeptWeights {
  uint32_t settled = 0;  // so many observations are in the weights
  RunningLoss loss{};
  std::vector<float> weights{};
};

}  // namespace foliot

#endif  // FOLIOT_PERSONAL_KEPT_WEIGHTS_H_
