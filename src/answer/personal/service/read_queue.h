// ReadQueue: reads of personal models that wait for a thread, in the order of their arrival. A read that
// cannot meet its deadline is refused at once.
//
// ReadCost estimates how long a read takes: the median of the last measured durations per unit of work. One
// that is older than kEstimateAgeMax does not count, so that a measurement that was disturbed does not refuse
// reads for ever.
//
// State machines: time is an argument.
//
// Threading: not thread-safe.
#ifndef FOLIOT_ANSWER_PERSONAL_SERVICE_READ_QUEUE_H_
#define FOLIOT_ANSWER_PERSONAL_SERVICE_READ_QUEUE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>

#include "foundation/base/time.h"
#include "foundation/core/request.h"

namespace foliot {

class ReadCost {
 public:
  static constexpr size_t kMeasurements = 10;
  static constexpr Duration kEstimateAgeMax = Duration::seconds(1);

  void record(Duration duration, uint64_t units, TimePoint now);
  // Zero: unknown.
  Duration estimate(uint64_t units, TimePoint now) const;

 private:
  std::array<double, kMeasurements> nanoseconds_per_unit_{};
  size_t count_ = 0;
  TimePoint last_;
};

class ReadQueue {
 public:
  struct Read {
    TimePoint deadline;
    Duration estimate;
    // `refusal`: why it is not carried out; kNone: it is.
    std::function<void(Refusal refusal)> run{};
  };
  struct Refused {
    Refusal refusal = Refusal::kNone;
    TimePoint earliest;  // when its answer could have been ready
  };

  ReadQueue(size_t reads_max, uint32_t threads) : reads_max_(reads_max), threads_(threads) {}

  // nullopt: it waits.
  std::optional<Refused> offer(Read read, TimePoint now);
  struct Taken {
    Read read;
    Refusal refusal = Refusal::kNone;  // kExpired: what remains of its time does not suffice
  };
  // The next one; nullopt: none waits.
  std::optional<Taken> take(TimePoint now);
  // One that take() returned is over.
  void finish(Duration estimate) { pending_ = pending_ - estimate; }

  size_t size() const { return reads_.size(); }

 private:
  const size_t reads_max_;
  const uint32_t threads_;
  Duration pending_;  // estimates of those that wait or run
  std::deque<Read> reads_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_SERVICE_READ_QUEUE_H_
