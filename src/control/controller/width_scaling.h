// WidthScaling: how many times as long EXECs take on one width of a device's lanes as on the
// next wider one, learned from models that have run on both, for those that have not.
//
// Of each step from a width to the next narrower one the largest of the last kWindow ratios
// counts, since a model that divides worse than others is late, and one that divides better is
// only tried a little later. Before any ratio is known, work is expected to take longer in
// proportion; it never is expected to take longer than that.
//
// Ratios are rounded up to multiples of 1 / kParts, so that few of them change anything.
//
// Threading: none; RollingDurationModel's.
#ifndef FOLIOT_CONTROL_CONTROLLER_WIDTH_SCALING_H_
#define FOLIOT_CONTROL_CONTROLLER_WIDTH_SCALING_H_

#include <array>
#include <cstdint>
#include <vector>

#include "foundation/base/time.h"
#include "foundation/core/lanes.h"

namespace foliot {

class WidthScaling {
 public:
  static constexpr uint32_t kWindow = 10;
  static constexpr int64_t kParts = 32;

  explicit WidthScaling(uint32_t lanes);

  // The width that is next in being wider. REQUIRES: it is not 0, all lanes.
  static uint32_t next_wider(uint32_t width_index, uint32_t lanes) {
    return width_index + 1 < width_count(lanes) ? width_index + 1 : 0;
  }
  // What takes so long on the next wider width takes as long as this.
  // REQUIRES: `width_index` > 0, as in all that follows.
  Duration narrower(uint32_t width_index, Duration on_next_wider) const {
    return on_next_wider * steps_[width_index].parts / kParts;
  }
  // The same batch took so long on this width, and so long on a wider one. What lies between follows
  // Amdahl's law. True if narrower() has changed.
  bool record(uint32_t width_index, Duration narrow, uint32_t wider_index, Duration wide);

 private:
  struct Step {
    int64_t parts = kParts;  // the largest of `last`
    int64_t parts_max = kParts;
    uint32_t count = 0;
    std::array<int64_t, kWindow> last{};
  };
  bool record_step(Step& step, int64_t parts);

  const uint32_t lanes_;
  std::vector<Step> steps_;  // by width_index; of 0 there is none
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_WIDTH_SCALING_H_
