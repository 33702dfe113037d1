#include "control/policies/inferline/inferline_policy.h"

#include <algorithm>
#include <span>

#include "control/policies/common/batching_policy.h"

namespace foliot::inferline {
namespace {

class InferlineRule : public BatchingRule {
 public:
  RequestQueue::Order order() const override { return RequestQueue::Order::kArrival; }
  Offer offer(const QueueView& /*queue*/, TimePoint now) const override { return {now}; }
  Batch choose(const QueueView& queue, TimePoint start) const override {
    const size_t first = queue.first_meetable(start);
    if (first == queue.requests.size()) return {};
    const std::span<const uint32_t> sizes = queue.batch_sizes();
    const Batch batch = form(queue, first, sizes.back());
    const size_t in_time = queue.requests.first_due_from(start + queue.exec(batch.batch_index));
    if (in_time < queue.requests.size()) return form(queue, in_time, sizes.back());
    return form(queue, first, sizes[largest_in_time(queue, first, start)]);
  }

 private:
  static Batch form(const QueueView& queue, size_t first, uint32_t most) {
    const std::span<const uint32_t> sizes = queue.batch_sizes();
    const auto rows = static_cast<uint32_t>(std::min<size_t>(queue.requests.size() - first, most));
    const auto size = std::lower_bound(sizes.begin(), sizes.end(), rows);
    return {first, rows, static_cast<uint32_t>(size - sizes.begin())};
  }
};

}  // namespace

std::unique_ptr<Policy> make_inferline_policy(const Cluster& cluster) {
  return std::make_unique<BatchingPolicy>(cluster, std::make_unique<InferlineRule>());
}

}  // namespace foliot::inferline
