// ValueRange: from one value to another, both included; empty at first.
#ifndef FOLIOT_ANSWER_PERSONAL_WEIGHTS_VALUE_RANGE_H_
#define FOLIOT_ANSWER_PERSONAL_WEIGHTS_VALUE_RANGE_H_

#include <algorithm>
#include <limits>

namespace foliot {

struct ValueRange {
  float low = std::numeric_limits<float>::infinity();
  float high = -std::numeric_limits<float>::infinity();

  static ValueRange all() { return {-std::numeric_limits<float>::infinity(), std::numeric_limits<float>::infinity()}; }
  bool is_empty() const { return low > high; }
  void include(float value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool contains(float value) const { return low <= value && value <= high; }
  // REQUIRES: it is not empty.
  float clip(float value) const { return std::clamp(value, low, high); }
  ValueRange clip(const ValueRange& other) const { return {clip(other.low), clip(other.high)}; }
  bool operator==(const ValueRange&) const = default;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_WEIGHTS_VALUE_RANGE_H_
