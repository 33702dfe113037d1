// LaneChoice: how many lanes of a device its next EXEC takes, and which.
//
// The narrower an EXEC is, the less of the device's time it takes, for work is never divided
// without loss; the wider, the sooner it is over. So lanes that are free are shared out among
// what waits: the only batch takes them all, and where as many wait as there are lanes, each
// takes one. What would be late on a narrow interval takes a wider one, before the others, and
// waits for its lanes as long as its deadline allows.
#ifndef FOLIOT_POLICIES_FOLIOT_LANE_CHOICE_H_
#define FOLIOT_POLICIES_FOLIOT_LANE_CHOICE_H_

#include <cstdint>

#include "policies/foliot/batch_selection.h"
#include "policies/foliot/board.h"

namespace foliot::foliot_policy {

class LaneChoice {
 public:
  LaneChoice(const Board& board, DeviceId device, TimePoint now);

  // The first to try.
  LaneInterval lanes() const { return lanes_; }
  // When they are free.
  TimePoint start() const { return start_; }
  // Goes on to the next wider interval; false if there is none.
  bool widen();
  // The lanes for a batch that can be met on lanes(): fewer of them, where that takes hardly
  // longer.
  LaneInterval fewest_for(const Batch& batch) const;

 private:
  // Of all intervals of this width the first that is free, and of several the first one.
  void find(uint32_t width);
  struct Waiting {
    // As large as they may be; what other devices may run as well counts in part. No more
    // than there are lanes.
    double batches = 0;
    uint32_t width = 1;  // that those take that are due first, to be in time
  };
  Waiting look() const;
  // The narrowest on which one row, begun at start(), is in time; 1 if none is.
  uint32_t width_for(ModelId model, BucketId bucket, TimePoint deadline) const;

  const Board& board_;
  const DeviceModel& device_;
  const TimePoint now_;
  LaneInterval lanes_;
  TimePoint start_;
};

}  // namespace foliot::foliot_policy

#endif  // FOLIOT_POLICIES_FOLIOT_LANE_CHOICE_H_
