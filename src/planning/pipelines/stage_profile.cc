#include "planning/pipelines/stage_profile.h"

#include <fmt/format.h>

#include <algorithm>

namespace foliot {
namespace {

Status check_quantile(const DurationQuantile& quantile, size_t sizes) {
  if (!(quantile.quantile > 0 && quantile.quantile <= 1)) {
    return Status::invalid_argument(fmt::format("a quantile of {} is not above 0 and at most 1", quantile.quantile));
  }
  if (quantile.of_batches.size() != sizes) {
    return Status::invalid_argument(
        fmt::format("has {} durations for {} batch sizes", quantile.of_batches.size(), sizes));
  }
  if (quantile.of_batches.front() <= Duration()) return Status::invalid_argument("a duration is not above 0");
  if (!std::is_sorted(quantile.of_batches.begin(), quantile.of_batches.end())) {
    return Status::invalid_argument("a larger batch takes less time than a smaller one");
  }
  return Status();
}

}  // namespace

Duration KindProfile::duration(uint32_t rows, double quantile) const {
  FOLIOT_CHECK(rows >= 1 && rows <= batch_sizes.back());
  auto found = std::find_if(quantiles.begin(), quantiles.end(),
                            [&](const DurationQuantile& each) { return each.quantile >= quantile; });
  if (found == quantiles.end()) --found;
  const auto size = std::lower_bound(batch_sizes.begin(), batch_sizes.end(), rows);
  return found->of_batches[static_cast<size_t>(size - batch_sizes.begin())];
}

void KindProfile::raise_to_smaller() {
  for (DurationQuantile& quantile : quantiles) {
    for (size_t i = 1; i < quantile.of_batches.size(); ++i) {
      quantile.of_batches[i] = std::max(quantile.of_batches[i], quantile.of_batches[i - 1]);
    }
  }
}

Status KindProfile::check() const {
  if (batch_sizes.empty() || batch_sizes.front() != 1) return Status::invalid_argument("batch sizes must begin with 1");
  if (std::adjacent_find(batch_sizes.begin(), batch_sizes.end(), std::greater_equal<>()) != batch_sizes.end()) {
    return Status::invalid_argument("batch sizes must be ascending");
  }
  if (batch_sizes.back() > kPlannedBatchMax) {
    return Status::invalid_argument(
        fmt::format("a batch size of {} is above the limit of {}", batch_sizes.back(), kPlannedBatchMax));
  }
  if (quantiles.empty()) return Status::invalid_argument("has no durations");
  for (size_t i = 0; i < quantiles.size(); ++i) {
    FOLIOT_RETURN_IF_ERROR(check_quantile(quantiles[i], batch_sizes.size()));
    if (i == 0) continue;
    if (quantiles[i].quantile <= quantiles[i - 1].quantile) {
      return Status::invalid_argument("quantiles must be ascending");
    }
    for (size_t size = 0; size < batch_sizes.size(); ++size) {
      if (quantiles[i].of_batches[size] < quantiles[i - 1].of_batches[size]) {
        return Status::invalid_argument(
            fmt::format("at batch size {}, a higher quantile is less than a lower one", batch_sizes[size]));
      }
    }
  }
  return Status();
}

const KindProfile* StageProfile::find(std::string_view kind) const {
  const auto found =
      std::find_if(kinds.begin(), kinds.end(), [&](const KindProfile& each) { return each.kind == kind; });
  return found == kinds.end() ? nullptr : &*found;
}

double mean_of_shares(const std::vector<double>& shares) {
  double sum = 0;
  double weighted = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    sum += shares[i];
    weighted += static_cast<double>(i) * shares[i];
  }
  return sum > 0 ? weighted / sum : 0;
}

}  // namespace foliot
