#include "control/policies/sjf/sjf_policy.h"

#include "control/policies/common/batching_policy.h"

namespace foliot::sjf {
namespace {

class SjfRule : public BatchingRule {
 public:
  RequestQueue::Order order() const override { return RequestQueue::Order::kArrival; }
  Offer offer(const QueueView& queue, TimePoint now) const override { return {now, queue.exec(0).nanoseconds()}; }
  Batch choose(const QueueView& queue, TimePoint start) const override {
    const size_t first = queue.first_meetable(start);
    return {first, first < queue.requests.size() ? 1u : 0u, 0};
  }
};

}  // namespace

std::unique_ptr<Policy> make_sjf_policy(const Cluster& cluster, QueryDrop drop) {
  return std::make_unique<BatchingPolicy>(cluster, std::make_unique<SjfRule>(), Duration::milliseconds(1), drop);
}

}  // namespace foliot::sjf
