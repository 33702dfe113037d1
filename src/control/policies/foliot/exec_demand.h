// ExecDemand: how many EXECs per second a device would have to run to keep up, and how long one takes
// on lanes of each width: the rate of the last kCount requests that came for it, over the rows of its
// last EXECs, and the mean durations of these. So it follows a change of load within as many requests,
// and falls while none comes. Before that many have come nothing is known.
//
// Where a device does not keep up, batches grow; so it also keeps what the rows of the last EXECs take in
// batches as large as can fill in time.
//
// Rejected: the rate of EXECs that were sent, which on a device that does not keep up is what it
// can do, not what it should; and ArrivalRate, whose shortest memory is 2 s: thousands of requests of
// a device of many cores.
#ifndef FOLIOT_CONTROL_POLICIES_FOLIOT_EXEC_DEMAND_H_
#define FOLIOT_CONTROL_POLICIES_FOLIOT_EXEC_DEMAND_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "foundation/base/time.h"

namespace foliot::foliot_policy {

class ExecDemand {
 public:
  static constexpr uint32_t kWidthsMax = 8;  // of up to kLanesMax lanes
  // Poisson arrivals: a standard error of 9 %.
  static constexpr uint32_t kCount = 128;

  // REQUIRES: no earlier than the last one.
  void arrived(TimePoint now) {
    arrivals_[count_ % kCount] = now;
    ++count_;
  }
  // On lanes of one width: how long an EXEC takes, and its rows as part of a batch that has grown.
  struct Exec {
    Duration now;
    Duration grown;
  };
  // An EXEC of so many rows, on lanes of each width, by its index. REQUIRES: at most kWidthsMax.
  void sent(uint32_t rows, std::span<const Exec> by_width) {
    rows_ += (rows - rows_) / kExecs;
    const double part = 1 / std::min(kExecs, static_cast<double>(++sent_));
    for (size_t i = 0; i < by_width.size(); ++i) {
      exec_[i].now += (by_width[i].now - exec_[i].now).scaled(part);
      exec_[i].grown += (by_width[i].grown - exec_[i].grown).scaled(part);
    }
  }
  // The mean of the last EXECs; zero before the first.
  const Exec& exec(uint32_t width_index) const { return exec_[width_index]; }
  // EXECs per second; 0 if it is not known.
  double at(TimePoint now) const {
    if (count_ < kCount) return 0;
    const Duration since_first = now - arrivals_[count_ % kCount];
    return kCount / std::max(since_first, Duration::microseconds(1)).to_seconds() / rows_;
  }

 private:
  static constexpr double kExecs = 64;  // after so many the means have followed a change

  std::array<TimePoint, kCount> arrivals_;
  uint64_t count_ = 0;
  double rows_ = 1;  // of an EXEC, on average
  uint64_t sent_ = 0;
  std::array<Exec, kWidthsMax> exec_{};  // by width_index, on average
};

}  // namespace foliot::foliot_policy

#endif  // FOLIOT_CONTROL_POLICIES_FOLIOT_EXEC_DEMAND_H_
