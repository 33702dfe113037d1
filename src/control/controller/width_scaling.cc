#include "control/controller/width_scaling.h"

#include <algorithm>
#include <cmath>

#include "foundation/base/check.h"

namespace foliot {

WidthScaling::WidthScaling(uint32_t lanes) : lanes_(lanes), steps_(width_count(lanes)) {
  for (uint32_t width = 1; width < steps_.size(); ++width) {
    const uint32_t wider = width_at(next_wider(width, lanes), lanes);
    steps_[width].parts_max = kParts * wider / width_at(width, lanes);
    steps_[width].parts = steps_[width].parts_max;
  }
}

bool WidthScaling::record(uint32_t width_index, Duration narrow, uint32_t wider_index, Duration wide) {
  FOLIOT_CHECK(width_index > 0 && width_index != wider_index);
  if (wide <= Duration()) return false;
  const auto lane = [&](uint32_t width) { return 1.0 / width_at(width, lanes_); };  // the part of divided work
  const double ratio = std::min(narrow.to_seconds() / wide.to_seconds(), lane(width_index) / lane(wider_index));
  const double divided = (ratio - 1) / (lane(width_index) - lane(wider_index));
  const auto time = [&](uint32_t width) { return 1 + divided * (lane(width) - lane(wider_index)); };
  bool changed = false;
  for (uint32_t width = width_index; width != wider_index; width = next_wider(width, lanes_)) {
    const double step = time(width) / time(next_wider(width, lanes_));
    changed |= record_step(steps_[width], static_cast<int64_t>(std::ceil(step * kParts)));
  }
  return changed;
}

bool WidthScaling::record_step(Step& step, int64_t parts) {
  step.last[step.count % kWindow] = std::clamp(parts, kParts, step.parts_max);
  ++step.count;
  const auto known = step.last.begin() + std::min(step.count, kWindow);
  const int64_t before = step.parts;
  step.parts = *std::max_element(step.last.begin(), known);
  return step.parts != before;
}

}  // namespace foliot
