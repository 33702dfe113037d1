#include "control/policies/flex/flex_policy.h"

#include "control/policies/common/batching_policy.h"

namespace foliot::flex {
namespace {

class FlexRule : public BatchingRule {
 public:
  RequestQueue::Order order() const override { return RequestQueue::Order::kDeadline; }
  Offer offer(const QueueView& queue, TimePoint now) const override {
    return {now, -static_cast<int64_t>(choose(queue, now).rows)};
  }
  Batch choose(const QueueView& queue, TimePoint start) const override {
    const size_t first = queue.first_meetable(start);
    if (first == queue.requests.size()) return {};
    return densest_batch(queue, first, largest_in_time(queue, first, start));
  }
};

}  // namespace

std::unique_ptr<Policy> make_flex_policy(const Cluster& cluster) {
  return std::make_unique<BatchingPolicy>(cluster, std::make_unique<FlexRule>());
}

}  // namespace foliot::flex
