// BoundModel: the facts of one kind of model, and of its requests, for
// ClairvoyantBound.
#ifndef FOLIOT_VIRTUAL_BOUNDS_BOUND_MODEL_H_
#define FOLIOT_VIRTUAL_BOUNDS_BOUND_MODEL_H_

#include <cstdint>
#include <vector>

#include "virtual/bounds/price_curve.h"

namespace foliot {

// Models with the same profile. Lengths are in seconds.
struct BoundKind {
  uint32_t pages = 1;
  ActionLength load;
  std::vector<uint32_t> sizes;     // of batches that can be run, ascending
  std::vector<ActionLength> exec;  // of sizes[i]
  double copy = 0;                 // INPUT and OUTPUT of a row take so long each
};

// In seconds since the first that counts could come. Inputs are on the device a copy
// after `ready`, and outputs must be there a copy before `due`. Those of one model are
// in the order of both.
struct BoundRequest {
  double ready = 0;
  double due = 0;
};

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_BOUNDS_BOUND_MODEL_H_
