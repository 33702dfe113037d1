#include "answer/personal/service/read_queue.h"

#include <algorithm>
#include <utility>

namespace foliot {

void ReadCost::record(Duration duration, uint64_t units, TimePoint now) {
  nanoseconds_per_unit_[count_ % kMeasurements] =
      static_cast<double>(duration.nanoseconds()) / static_cast<double>(std::max<uint64_t>(1, units));
  ++count_;
  last_ = now;
}

Duration ReadCost::estimate(uint64_t units, TimePoint now) const {
  if (count_ == 0 || now - last_ > kEstimateAgeMax) return {};
  std::array<double, kMeasurements> sorted = nanoseconds_per_unit_;
  const auto end = sorted.begin() + static_cast<ptrdiff_t>(std::min(count_, kMeasurements));
  const auto middle = sorted.begin() + (end - sorted.begin()) / 2;
  std::nth_element(sorted.begin(), middle, end);
  return Duration::nanoseconds(static_cast<int64_t>(*middle * static_cast<double>(units)));
}

std::optional<ReadQueue::Refused> ReadQueue::offer(Read read, TimePoint now) {
  const TimePoint alone = now + read.estimate;
  if (alone > read.deadline) return Refused{Refusal::kUnmeetable, alone};
  const TimePoint earliest = alone + Duration::nanoseconds(pending_.nanoseconds() / threads_);
  if (earliest > read.deadline || reads_.size() >= reads_max_) return Refused{Refusal::kOverload, earliest};
  pending_ = pending_ + read.estimate;
  reads_.push_back(std::move(read));
  return std::nullopt;
}

std::optional<ReadQueue::Taken> ReadQueue::take(TimePoint now) {
  if (reads_.empty()) return std::nullopt;
  Taken taken{.read = std::move(reads_.front())};
  reads_.pop_front();
  if (now + taken.read.estimate > taken.read.deadline) taken.refusal = Refusal::kExpired;
  return taken;
}

}  // namespace foliot
