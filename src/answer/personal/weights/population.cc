#include "answer/personal/weights/population.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "foundation/base/hash.h"

namespace foliot {
namespace {

// Of a float: sign, exponent and six bits of the fraction.
constexpr int kBinShift = 17;

// Ascends with the value.
int32_t ordered(float value) {
  const auto bits = std::bit_cast<int32_t>(value);
  return bits >= 0 ? bits : bits ^ 0x7fffffff;
}
float from_ordered(int32_t number) { return std::bit_cast<float>(number >= 0 ? number : number ^ 0x7fffffff); }
int32_t bin_of(float value) { return ordered(value) >> kBinShift; }
float least_of(int32_t bin) { return from_ordered(static_cast<int32_t>(static_cast<uint32_t>(bin) << kBinShift)); }
float greatest_of(int32_t bin) {
  return from_ordered(static_cast<int32_t>((static_cast<uint32_t>(bin) << kBinShift) | ((1U << kBinShift) - 1)));
}

// True: another bin has one more or less.
bool move(Population::Bins& bins, std::optional<int32_t> from, std::optional<int32_t> to) {
  if (from == to) return false;
  if (to) ++bins[*to];
  if (from && --bins[*from] == 0) bins.erase(*from);
  return true;
}

// The bin with the `number`-th of them.
template <typename Iterator>
int32_t bin_with(Iterator bin, uint64_t number) {
  while (bin->second < number) {
    number -= bin->second;
    ++bin;
  }
  return bin->first;
}

uint32_t zeros_of(uint64_t user) {
  return static_cast<uint32_t>(std::countl_zero(hash64(std::as_bytes(std::span(&user, 1)))));
}

}  // namespace

Population::Population(State state) : state_(std::move(state)) {
  for (auto& [user, sampled] : state_.sampled) {
    sampled.revision = revision_;
    sampled.zeros = zeros_of(user);
  }
  choose_level();
  learn_range();
}

uint64_t Population::count_from(size_t zeros) const {
  uint64_t count = 0;
  for (size_t i = zeros; i < state_.users.size(); ++i) count += state_.users[i];
  return count;
}

void Population::change(uint64_t user, const ValueRange& before, const ValueRange& after,
                        std::span<const UserObservation> observations) {
  const uint32_t zeros = zeros_of(user);
  const auto bin = [](const ValueRange& range, float value) {
    return range.is_empty() ? std::nullopt : std::optional(bin_of(value));
  };
  state_.users[zeros] += after.is_empty() ? 0 : 1;
  state_.users[zeros] -= before.is_empty() ? 0 : 1;
  const bool has_low = move(state_.lows, bin(before, before.low), bin(after, after.low));
  const bool has_high = move(state_.highs, bin(before, before.high), bin(after, after.high));
  if (has_low || has_high || before.is_empty() != after.is_empty()) learn_range();
  if (before.is_empty() != after.is_empty()) choose_level();
  if (!after.is_empty()) {
    sample(user, observations);
  } else if (state_.sampled.erase(user) > 0 && zeros >= level_) {
    ++revision_;
  }
}

void Population::choose_level() {
  const uint32_t before = level_;
  while (count_from(level_) > kSampledMax) ++level_;
  while (level_ > 0 && count_from(level_ - 1) <= kSampledMax) --level_;
  if (level_ != before) ++revision_;
  if (state_.level + 1 < level_) keep_from(level_ - 1);
}

void Population::begin_sample() { state_.level = level_ > 0 ? level_ - 1 : 0; }

void Population::sample(uint64_t user, std::span<const UserObservation> observations) {
  const uint32_t zeros = zeros_of(user);
  if (observations.empty() || zeros < state_.level) return;
  Sampled& sampled = state_.sampled[user];
  const size_t count = std::min(std::bit_floor(observations.size()), kObservationsMax);
  if (sampled.values.size() == count) return;
  if (zeros >= level_) ++revision_;
  sampled.revision = revision_;
  sampled.zeros = zeros;
  for (size_t i = sampled.values.size(); i < count; ++i) {
    sampled.items.push_back(observations[i].item);
    sampled.values.push_back(observations[i].value);
  }
  if (state_.sampled.size() > kKeptMax) keep_from(level_);
}

void Population::keep_from(uint32_t level) {
  state_.level = level;
  std::erase_if(state_.sampled, [level](const auto& one) { return one.second.zeros < level; });
}

void Population::learn_range() {
  const uint64_t count = users();
  ValueRange range = ValueRange::all();
  if (count > 0) {
    const uint64_t support = std::min(kSupportMax, 1 + (count + 4) / 8);
    const double low = least_of(bin_with(state_.lows.begin(), support));
    const double high = greatest_of(bin_with(state_.highs.rbegin(), support));
    // Of values that each user has another one of, the least of the greatest may be below the greatest of the least.
    const double beyond = std::abs(high - low) / 2;
    constexpr double kMost = std::numeric_limits<float>::max();
    range.low = static_cast<float>(std::max(std::min(low, high) - beyond, -kMost));
    range.high = static_cast<float>(std::min(std::max(low, high) + beyond, kMost));
  }
  if (range == range_) return;
  range_ = range;
  ++revision_;
  ++range_revision_;
}

uint64_t Population::users_outside() const {
  uint64_t low = 0;
  for (const auto& [bin, count] : state_.lows) low += greatest_of(bin) < range_.low ? count : 0;
  uint64_t high = 0;
  for (const auto& [bin, count] : state_.highs) high += least_of(bin) > range_.high ? count : 0;
  return low + high;
}

}  // namespace foliot
