#include "control/policies/dynamic_batching/dynamic_batching_policy.h"

#include <algorithm>
#include <span>

#include "control/policies/common/batching_policy.h"

namespace foliot::dynamic_batching {
namespace {

class DynamicBatchingRule : public BatchingRule {
 public:
  explicit DynamicBatchingRule(const DynamicBatchingOptions& options) : options_(options) {}

  RequestQueue::Order order() const override { return RequestQueue::Order::kArrival; }

  Offer offer(const QueueView& queue, TimePoint now) const override {
    const bool preferred = queue.requests.size() >= smallest_preferred(queue);
    return {preferred ? now : std::max(now, queue.requests[0].place.order + options_.queue_delay_max)};
  }

  Batch choose(const QueueView& queue, TimePoint start) const override {
    const size_t first = queue.first_meetable(start);
    if (first == queue.requests.size()) return {};
    const Batch batch = form(queue, first);
    // The timeout of requests that would be late in it.
    const size_t in_time = queue.requests.first_due_from(start + queue.exec(batch.batch_index));
    return in_time < queue.requests.size() ? form(queue, in_time) : batch;
  }

 private:
  // The largest preferred size that is filled; if none is, all there are.
  Batch form(const QueueView& queue, size_t first) const {
    const std::span<const uint32_t> sizes = queue.batch_sizes();
    const size_t available = queue.requests.size() - first;
    for (auto index = static_cast<uint32_t>(sizes.size()); index-- > 0;) {
      if (sizes[index] < smallest_preferred(queue)) break;
      if (sizes[index] <= available) return {first, sizes[index], index};
    }
    const auto fits = std::lower_bound(sizes.begin(), sizes.end(), available);
    return {first, static_cast<uint32_t>(available), static_cast<uint32_t>(fits - sizes.begin())};
  }

  uint32_t smallest_preferred(const QueueView& queue) const {
    const std::span<const uint32_t> sizes = queue.batch_sizes();
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
