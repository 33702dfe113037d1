#include "policies/flex/flex_policy.h"

#include "policies/common/batching_policy.h"

namespace foliot::flex {
namespace {

class FlexRule : public BatchingRule {
 public:
  Lane::Order order() const override { return Lane::Order::kDeadline; }
  Offer offer(const LaneView& lane, TimePoint now) const override {
    return {now, -static_cast<int64_t>(choose(lane, now).rows)};
  }
  Batch choose(const LaneView& lane, TimePoint start) const override {
    const size_t first = lane.first_meetable(start);
    if (first == lane.queue.size()) return {};
    return densest_batch(lane, first, largest_in_time(lane, first, start));
  }
};

}  // namespace

std::unique_ptr<Policy> make_flex_policy(const Cluster& cluster) {
  return std::make_unique<BatchingPolicy>(cluster, std::make_unique<FlexRule>());
}

}  // namespace foliot::flex
