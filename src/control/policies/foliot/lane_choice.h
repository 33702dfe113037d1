// LaneChoice: how many lanes of a device its next EXEC takes, and which.
//
// The narrower an EXEC is, the less of the device's time it takes, for work is never divided
// without loss; the wider, the sooner it is over. So all that waits is laid out over the
// device's lanes once for each width, and what comes later is expected to wait as long as it
// does on average for as many servers as there are intervals, which are as busy as the last EXECs
// and the rate of requests would make them (ExecDemand). Of that wait an EXEC causes the part that it is
// of what EXECs take: a short one makes few wait, on all lanes, too.
// Whether a width keeps up is judged with batches as large as can fill in time: where it does not
// with those of now, they grow.
// Of the widths that keep up with that rate the one is taken at which both together are least,
// or, where none does, the one that takes the least of the device's time: what waits alone on a
// device that has little to do takes all lanes, or waits for them if that is sooner; where much is
// to be done, each takes as few as it runs well on. What would be late on a narrow interval takes
// a wider one, before the others, and waits for its lanes as long as its deadline allows. Under
// overload it does so only if nothing else can be met: others would be late for the time that it
// takes, and for want of that time still more would have to take more lanes.
//
// How long a batch takes on fewer lanes is known once it has run there. Before, a good division
// is assumed, so that it will be tried where several wait; whether it is in time is judged by
// what is expected of it (DurationModel).
#ifndef FOLIOT_CONTROL_POLICIES_FOLIOT_LANE_CHOICE_H_
#define FOLIOT_CONTROL_POLICIES_FOLIOT_LANE_CHOICE_H_

#include <array>
#include <cstdint>

#include "control/policies/foliot/batch_selection.h"
#include "control/policies/foliot/board.h"

namespace foliot::foliot_policy {

class LaneChoice {
 public:
  // `divides`: an EXEC may take fewer lanes than all (lane_division.h). `overloaded`: some requests are not met anyway.
  LaneChoice(const Board& board, DeviceId device, TimePoint now, bool divides, bool overloaded);

  // The first to try.
  LaneInterval lanes() const { return lanes_; }
  // When they are free.
  TimePoint start() const { return start_; }
  // Goes on to the next wider interval; false if there is none.
  bool widen();
  // The lanes for a batch that can be met on lanes(): fewer of them, where that takes hardly
  // longer, or where it is to leave some to others.
  LaneInterval fewest_for(const Batch& batch) const;

 private:
  // Of all intervals of this width the first that is free, and of several the first one.
  void find(uint32_t width);
  struct Waiting {
    // As large as they may be; what other devices may run as well counts in part.
    double batches = 0;
    // Of all of them, on intervals of each width.
    std::array<Duration, ExecDemand::kWidthsMax> exec{};
    uint32_t width = 1;  // that those take that are due first, to be in time
  };
  Waiting look() const;
  // At which what waits and what comes later end soonest.
  uint32_t best_width(const Waiting& waiting) const;
  void add(Waiting& waiting, ModelId model, BucketId bucket, double batches, uint32_t batch_index) const;
  // When they end on average, from `start_` on, if each takes so many lanes.
  Duration mean_end(const Waiting& waiting, Duration exec, uint32_t width) const;
  // How busy the intervals of this width would be, if each EXEC were on one.
  double busy_share(Duration exec, uint32_t width) const;
  // How long batches that come later wait because of an EXEC of this duration (Sakasegawa's approximation for Poisson
  // arrivals: the mean wait where all EXECs take so long). REQUIRES: busy < 1.
  Duration mean_wait(Duration exec, uint32_t width, double busy) const;
  // The narrowest on which one row, begun at start(), is in time; 1 if none is.
  uint32_t width_for(ModelId model, BucketId bucket, TimePoint deadline) const;

  const Board& board_;
  const DeviceModel& device_;
  const TimePoint now_;
  LaneInterval lanes_;
  TimePoint start_;
};

}  // namespace foliot::foliot_policy

#endif  // FOLIOT_CONTROL_POLICIES_FOLIOT_LANE_CHOICE_H_
