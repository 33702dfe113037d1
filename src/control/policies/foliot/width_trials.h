// WidthTrials: which EXECs are run on more or fewer lanes than seems best, so that how long they take there is known.
//
// A width that was never measured is not chosen where it is expected to take longer, and one that was
// measured once, when its code and memory were cold, is not chosen again. Threads that begin an EXEC together have to
// meet: of an EXEC of 10 us that takes most of the time, and one lane would be several times as fast.
//
// So each width is tried by the binary logarithm of how often the model's EXECs were sent to the device since it was
// last chosen, and by one in 512 of them: of 32 EXECs five times, of 10,000 thirty times. What took long by accident,
// some EXECs in a row, is so found out as soon as what was never run. A trial has to cost little:
//  - The EXEC is short, so that the meeting of threads may be a part of it, or what is expected cannot be: that it
//    takes longer than with all its work on fewer lanes.
//  - Half of the time that its requests have is left if it takes as long as is expected.
//  - More lanes than it was chosen for are free, and nothing else waits.
//
// Counts are kept for each device, model and bucket of devices of several lanes: a few bytes a width.
#ifndef FOLIOT_CONTROL_POLICIES_FOLIOT_WIDTH_TRIALS_H_
#define FOLIOT_CONTROL_POLICIES_FOLIOT_WIDTH_TRIALS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "control/policies/foliot/batch.h"
#include "control/policies/foliot/board.h"
#include "foundation/base/flat_map.h"
#include "foundation/core/lanes.h"

namespace foliot::foliot_policy {

class WidthTrials {
 public:
  explicit WidthTrials(const Board& board) : board_(board) {}

  // Returns the lanes on which to run the batch, which was chosen for `lanes`, free at `start`: others if a width is to
  // be tried. Then the batch is a trial, and has to start in time for these. `divides`: EXECs share the device's lanes
  // (lane_division.h).
  LaneInterval lanes_for(DeviceId device, Batch& batch, LaneInterval lanes, TimePoint now, TimePoint start,
                         bool divides) const;
  // An EXEC was sent. REQUIRES: the device has several lanes.
  void sent(DeviceId device, const Batch& batch, LaneInterval lanes);
  // The model has no more than so many buckets.
  void forget(ModelId model, size_t buckets);

 private:
  struct Width {
    uint32_t chosen_at = 0;  // so many EXECs were sent before
    uint32_t trials = 0;     // since then
  };
  struct Counts {
    uint32_t all = 0;
    std::array<Width, ExecDemand::kWidthsMax> widths{};  // by width_index
  };

  static uint64_t key(ModelId model, BucketId bucket) { return (uint64_t{model.value()} << 16) | bucket.value(); }
  // Returns whether this width was tried too rarely since it was last chosen.
  static bool is_due(const Counts& counts, uint32_t width_index);
  // Returns whether it could turn out better than the width that was chosen, and costs little if it does not.
  bool is_worth_it(const ExecShape& tried, const ExecShape& chosen, bool divides) const;
  // Returns when the batch has to begin on such a width; nullopt if too little time would be left.
  std::optional<TimePoint> latest_start(const Batch& batch, const ExecShape& tried, TimePoint start) const;
  // Returns whether these are free at `start`, and only requests of the batch's model wait for them.
  bool may_widen(DeviceId device, ModelId model, LaneInterval lanes, TimePoint now, TimePoint start) const;

  const Board& board_;
  std::vector<FlatMap<uint64_t, Counts>> counts_;  // by device
};

}  // namespace foliot::foliot_policy

#endif  // FOLIOT_CONTROL_POLICIES_FOLIOT_WIDTH_TRIALS_H_
