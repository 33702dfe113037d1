// ModelTarget: what should be of one model: how many copies, on which kinds of device, in
// batches of what size. It is decided apart from policies (by an operator, a planner, a
// tuner, an autoscaler) and constrains all of them; it never acts by itself.
//
// A copy is a device that is up and holds the model, loaded or loading. The default
// constrains nothing.
#ifndef FOLIOT_FOUNDATION_CORE_MODEL_TARGET_H_
#define FOLIOT_FOUNDATION_CORE_MODEL_TARGET_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace foliot {

struct ModelTarget {
  static constexpr uint32_t kNoLimit = std::numeric_limits<uint32_t>::max();

  // Copies are loaded without requests until there are so many, and none of these is
  // evicted. More than the cluster can hold is legal: as many as fit are held.
  uint32_t copies_least = 0;
  // No LOAD beyond this; what is there beyond it is unloaded. 0: the model is not served.
  uint32_t copies_most = kNoLimit;
  // Kinds of device on which it may be loaded and run, by name; empty: all.
  std::vector<std::string> kinds{};
  // Rows of the largest batch, at least 1. A compiled batch size above it is not run; where
  // even the smallest is above it, devices of that kind do not run the model.
  uint32_t batch_most = kNoLimit;

  bool constrains_copies() const { return copies_least > 0 || copies_most != kNoLimit; }
  bool operator==(const ModelTarget&) const = default;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_MODEL_TARGET_H_
