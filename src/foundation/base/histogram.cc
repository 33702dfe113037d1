#include "foundation/base/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "foundation/base/check.h"

namespace foliot {
namespace {

// Each power of two is cut into 2^kSubBits equal buckets.
constexpr int kSubBits = 6;
constexpr uint64_t kSub = uint64_t{1} << kSubBits;

size_t bucket_of(uint64_t value) {
  if (value < kSub) return value;
  const int shift = std::bit_width(value) - 1 - kSubBits;
  return static_cast<size_t>((static_cast<uint64_t>(shift) + 1) * kSub + ((value >> shift) - kSub));
}

uint64_t upper_end(size_t bucket) {
  if (bucket < kSub) return bucket;
  const uint64_t shift = bucket / kSub - 1;
  return (((bucket % kSub) + kSub + 1) << shift) - 1;
}

constexpr size_t kBuckets = (63 - kSubBits + 1) * kSub;

}  // namespace

Histogram::Histogram() : buckets_(kBuckets) {}

void Histogram::record(Duration value) {
  value = std::max(value, Duration());
  ++buckets_[bucket_of(static_cast<uint64_t>(value.nanoseconds()))];
  ++count_;
  sum_nanoseconds_ += static_cast<double>(value.nanoseconds());
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
}

void Histogram::merge(const Histogram& other) {
  for (size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  sum_nanoseconds_ += other.sum_nanoseconds_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

Duration Histogram::min() const { return count_ == 0 ? Duration() : min_; }
Duration Histogram::max() const { return max_; }
Duration Histogram::mean() const {
  if (count_ == 0) return Duration();
  return Duration::nanoseconds(static_cast<int64_t>(sum_nanoseconds_ / static_cast<double>(count_)));
}

Duration Histogram::quantile(double quantile) const {
  FOLIOT_CHECK(quantile >= 0 && quantile <= 1);
  if (count_ == 0) return Duration();
  const auto rank = std::max<uint64_t>(1, static_cast<uint64_t>(std::ceil(quantile * static_cast<double>(count_))));
  uint64_t seen = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen >= rank) {
      const auto end = Duration::nanoseconds(static_cast<int64_t>(upper_end(i)));
      return std::clamp(end, min_, max_);
    }
  }
  return max_;
}

}  // namespace foliot
