// KeptWeights: what a WeightTable knows of a user, while the user is not in memory.
#ifndef FOLIOT_ANSWER_PERSONAL_WEIGHTS_KEPT_WEIGHTS_H_
#define FOLIOT_ANSWER_PERSONAL_WEIGHTS_KEPT_WEIGHTS_H_

#include <cstdint>
#include <vector>

#include "answer/personal/weights/running_loss.h"

namespace foliot {

struct KeptWeights {
  uint32_t settled = 0;   // so many observations are in the weights
  uint64_t revision = 0;  // of the population that they follow from
  RunningLoss loss{};
  std::vector<float> weights{};
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_WEIGHTS_KEPT_WEIGHTS_H_
