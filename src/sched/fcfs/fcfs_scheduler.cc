#include "sched/fcfs/fcfs_scheduler.h"

#include "policy/batching_scheduler.h"

namespace foliot::fcfs {
namespace {

class FcfsRule : public BatchingRule {
 public:
  Lane::Order order() const override { return Lane::Order::kArrival; }
  Offer offer(const LaneView& /*lane*/, TimePoint now) const override { return {now}; }
  Batch choose(const LaneView& lane, TimePoint start) const override {
    const size_t first = lane.first_meetable(start);
    return {first, first < lane.queue.size() ? 1u : 0u, 0};
  }
};

}  // namespace

std::unique_ptr<Scheduler> make_fcfs_scheduler(const Cluster& cluster) {
  return std::make_unique<BatchingScheduler>(cluster, std::make_unique<FcfsRule>());
}

}  // namespace foliot::fcfs
