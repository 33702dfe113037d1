#include "engine/compiler/bucket_suggestion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "foundation/base/toml_text.h"

namespace foliot {
namespace {

constexpr std::array<int64_t, 3> kLengths{32, 64, 128}, kImageSides{224, 320, 448};
// Of a first dimension that is no batch: requests have exactly these.
constexpr std::array<int64_t, 5> kLeadingSizes{1, 2, 4, 8, 16};
constexpr int64_t kChannels = 3;
constexpr size_t kImageRank = 4;  // batch, channels, height, width

bool is_leading(const VariableDimension& dimension) { return dimension.axis == 0; }
bool is_channels(const VariableDimension& dimension) { return dimension.rank == kImageRank && dimension.axis == 1; }
bool is_image_side(const VariableDimension& dimension) { return dimension.rank == kImageRank && dimension.axis >= 2; }

// Of `count` sizes. `alone`: there are no dimensions of another kind.
std::vector<int64_t> sizes_of(const VariableDimension& dimension, size_t count, bool alone) {
  if (is_leading(dimension)) {
    std::vector<int64_t> sizes(count, 1);
    if (alone)
      std::ranges::copy_n(kLeadingSizes.begin(), static_cast<std::ptrdiff_t>(std::min(count, kLeadingSizes.size())),
                          sizes.begin());
    return sizes;
  }
  const auto& known = is_image_side(dimension) ? kImageSides : kLengths;
  // One size alone is the one that fits most requests.
  if (count == 1) return {is_channels(dimension) ? kChannels : is_image_side(dimension) ? known.front() : known.back()};
  std::vector<int64_t> sizes(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(std::min(count, known.size())));
  while (sizes.size() < count) sizes.push_back(sizes.back() + known.front());
  return sizes;
}

}  // namespace

BucketSizes suggest_buckets(std::span<const VariableDimension> dimensions, const BucketSizes& declared, size_t count) {
  BucketSizes buckets = declared;
  const bool leading_alone = declared.empty() && std::ranges::all_of(dimensions, is_leading);
  // The number of channels does not grow with anything.
  if (count == 0) {
    count = std::ranges::any_of(dimensions, is_channels) ? 1 : leading_alone ? kLeadingSizes.size() : kLengths.size();
  }
  if (!declared.empty()) count = declared.begin()->second.size();
  for (const VariableDimension& dimension : dimensions) {
    if (!declared.contains(dimension.name)) buckets[dimension.name] = sizes_of(dimension, count, leading_alone);
  }
  return buckets;
}

std::string toml_list(std::span<const int64_t> numbers) { return fmt::format("[{}]", fmt::join(numbers, ", ")); }

std::string buckets_as_toml(const BucketSizes& buckets) {
  std::vector<std::string> entries;
  for (const auto& [name, sizes] : buckets) entries.push_back(fmt::format("{} = {}", toml_key(name), toml_list(sizes)));
  return fmt::format("buckets = {{{}}}", fmt::join(entries, ", "));
}

}  // namespace foliot
