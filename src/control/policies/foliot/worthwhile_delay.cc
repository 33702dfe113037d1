#include "control/policies/foliot/worthwhile_delay.h"

#include <algorithm>

namespace foliot::foliot_policy {
namespace {

// So much of their requests' time in all is spent to save as much of a device's.
constexpr double kPrice = 15;
// No request waits for a larger part of the time that it can spare than one in so many.
constexpr int64_t kTimeParts = 6;
// Nor for longer, however late its deadline is.
constexpr Duration kDelayMax = Duration::milliseconds(20);

// What a batch takes besides what each of its rows does.
double fixed_part(const DelayedBatch& batch) {
  const double rows = batch.sizes.back() - batch.sizes.front();
  const double each = (batch.execs.back() - batch.execs.front()).to_seconds() / rows;
  return batch.execs.front().to_seconds() - each * batch.sizes.front();
}

}  // namespace

// In a delay of d, `rate` * d more rows come. They save as many fixed parts, while the first request waits for d and
// the others for half of it on average: d (1 + rate * d / 2) <= kPrice * fixed_part * rate * d.
Duration worthwhile_delay(const DelayedBatch& batch) {
  if (batch.sizes.size() < 2 || batch.rate <= 0) return Duration();
  const double seconds = 2 * (kPrice * fixed_part(batch) - 1 / batch.rate);
  // It may find a batch before it, and its own takes as long.
  const Duration spare = batch.time - batch.execs.back() * 2;
  const Duration longest = std::min(kDelayMax, spare / kTimeParts);
  return seconds <= 0 ? Duration() : std::max(Duration(), std::min(longest, Duration::from_seconds(seconds)));
}

}  // namespace foliot::foliot_policy
