#include "policies/sjf/sjf_policy.h"

#include "policies/common/batching_policy.h"

namespace foliot::sjf {
namespace {

class SjfRule : public BatchingRule {
 public:
  Lane::Order order() const override { return Lane::Order::kArrival; }
  Offer offer(const LaneView& lane, TimePoint now) const override { return {now, lane.exec(0).nanoseconds()}; }
  Batch choose(const LaneView& lane, TimePoint start) const override {
    const size_t first = lane.first_meetable(start);
    return {first, first < lane.queue.size() ? 1u : 0u, 0};
  }
};

}  // namespace

std::unique_ptr<Policy> make_sjf_policy(const Cluster& cluster) {
  return std::make_unique<BatchingPolicy>(cluster, std::make_unique<SjfRule>());
}

}  // namespace foliot::sjf
