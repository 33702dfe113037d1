#include "control/policies/edf/edf_policy.h"

#include "control/policies/common/batching_policy.h"

namespace foliot::edf {
namespace {

class EdfRule : public BatchingRule {
 public:
  RequestQueue::Order order() const override { return RequestQueue::Order::kDeadline; }
  Offer offer(const QueueView& /*queue*/, TimePoint now) const override { return {now}; }
  Batch choose(const QueueView& queue, TimePoint start) const override {
    const size_t first = queue.first_meetable(start);
    return {first, first < queue.requests.size() ? 1u : 0u, 0};
  }
};

}  // namespace

std::unique_ptr<Policy> make_edf_policy(const Cluster& cluster, QueryDrop drop) {
  return std::make_unique<BatchingPolicy>(cluster, std::make_unique<EdfRule>(), Duration::milliseconds(1), drop);
}

}  // namespace foliot::edf
