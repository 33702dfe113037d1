#include "sched/flex/flex_scheduler.h"

#include "policy/batching_scheduler.h"

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

std::unique_ptr<Scheduler> make_flex_scheduler(const Cluster& cluster) {
  return std::make_unique<BatchingScheduler>(cluster, std::make_unique<FlexRule>());
}

}  // namespace foliot::flex
