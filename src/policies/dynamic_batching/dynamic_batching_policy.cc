#include "policies/dynamic_batching/dynamic_batching_policy.h"

#include <algorithm>
#include <span>

#include "policies/common/batching_policy.h"

namespace foliot::dynamic_batching {
namespace {

class DynamicBatchingRule : public BatchingRule {
 public:
  explicit DynamicBatchingRule(const DynamicBatchingOptions& options) : options_(options) {}

  Lane::Order order() const override { return Lane::Order::kArrival; }

  Offer offer(const LaneView& lane, TimePoint now) const override {
    const bool preferred = lane.queue.size() >= smallest_preferred(lane);
    return {preferred ? now : std::max(now, lane.queue[0].place.order + options_.queue_delay_max)};
  }

  Batch choose(const LaneView& lane, TimePoint start) const override {
    const size_t first = lane.first_meetable(start);
    if (first == lane.queue.size()) return {};
    const Batch batch = form(lane, first);
    // The timeout of requests that would be late in it.
    const size_t in_time = lane.queue.first_due_from(start + lane.exec(batch.batch_index));
    return in_time < lane.queue.size() ? form(lane, in_time) : batch;
  }

 private:
  // The largest preferred size that is filled; if none is, all there are.
  Batch form(const LaneView& lane, size_t first) const {
    const std::span<const uint32_t> sizes = lane.batch_sizes();
    const size_t available = lane.queue.size() - first;
    for (auto index = static_cast<uint32_t>(sizes.size()); index-- > 0;) {
      if (sizes[index] < smallest_preferred(lane)) break;
      if (sizes[index] <= available) return {first, sizes[index], index};
    }
    const auto fits = std::lower_bound(sizes.begin(), sizes.end(), available);
    return {first, static_cast<uint32_t>(available), static_cast<uint32_t>(fits - sizes.begin())};
  }

  uint32_t smallest_preferred(const LaneView& lane) const {
    const std::span<const uint32_t> sizes = lane.batch_sizes();
    const auto found = std::lower_bound(sizes.begin(), sizes.end(), options_.preferred_from);
    return found == sizes.end() ? sizes.back() : *found;
  }

  DynamicBatchingOptions options_;
};

}  // namespace

std::unique_ptr<Policy> make_dynamic_batching_policy(const Cluster& cluster, const DynamicBatchingOptions& options) {
  return std::make_unique<BatchingPolicy>(cluster, std::make_unique<DynamicBatchingRule>(options));
}

}  // namespace foliot::dynamic_batching
