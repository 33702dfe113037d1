// ArrivalPeriod: predicts the next arrival of a model whose requests come at regular
// intervals: timers, cron jobs, cameras.
//
// Arrivals are held against a grid of ticks, whose phase and period follow them (an
// alpha-beta filter). Each arrival near a tick is evidence for the grid: the nearer to it,
// measured in periods, the less likely it is by chance. Each arrival elsewhere is evidence
// against it, and when there is none left the grid begins anew with the last gap. Ticks may
// be skipped, and several requests may come at one tick. So a period is believed after a few
// arrivals, a jitter of a twentieth of it is borne, and a change is noticed after one or two.
//
// One period is found, not several that are superposed: such arrivals are as if at random,
// and nothing is predicted of them.
//
// Cost: constant time per arrival, constant memory. Units: any clock, since it never reads one.
#ifndef FOLIOT_CONTROL_POLICIES_FOLIOT_ARRIVAL_PERIOD_H_
#define FOLIOT_CONTROL_POLICIES_FOLIOT_ARRIVAL_PERIOD_H_

#include <cstdint>
#include <optional>

#include "foundation/base/time.h"

namespace foliot::foliot_policy {

class ArrivalPeriod {
 public:
  struct Prediction {
    TimePoint at;
    Duration error;  // how far from it arrivals have lately been, on average
  };

  // An arrival that is not after the last one is another row of it, or one that is tried again,
  // and changes nothing.
  void record(TimePoint arrival);
  // The next arrival at or after `now`, or just before it, where it may only be late;
  // nullopt where no period is believed, or three ticks have passed without an arrival.
  std::optional<Prediction> next(TimePoint now) const;

 private:
  static constexpr TimePoint kNever = TimePoint::infinite_future();

  void begin(TimePoint arrival, Duration gap);
  bool believed() const;
  // How late an arrival may be and still belong to its tick.
  Duration tolerance() const;

  TimePoint last_ = kNever;
  TimePoint tick_;   // the last one, as filtered
  Duration period_;  // zero before the second arrival
  Duration error_;   // mean distance of arrivals from their ticks
  int8_t evidence_ = 0;
  uint8_t hits_ = 0;  // since the grid began, up to kHitsMax
};

}  // namespace foliot::foliot_policy

#endif  // FOLIOT_CONTROL_POLICIES_FOLIOT_ARRIVAL_PERIOD_H_
