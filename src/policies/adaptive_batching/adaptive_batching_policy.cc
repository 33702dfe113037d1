#include "policies/adaptive_batching/adaptive_batching_policy.h"

#include <algorithm>
#include <map>
#include <utility>

#include "policies/common/batching_policy.h"

namespace foliot::adaptive_batching {
namespace {

class AdaptiveBatchingRule : public BatchingRule {
 public:
  AdaptiveBatchingRule(const Cluster& cluster, const AdaptiveBatchingOptions& options)
      : cluster_(cluster), options_(options) {}

  Lane::Order order() const override { return Lane::Order::kArrival; }

  Offer offer(const LaneView& lane, TimePoint now) const override {
    const uint32_t limit = lane.batch_sizes()[limit_of(lane)];
    return {lane.queue.size() >= limit ? now : std::max(now, lane.queue[0].place.order + options_.batch_delay)};
  }

  Batch choose(const LaneView& lane, TimePoint start) const override {
    const size_t first = lane.first_meetable(start);
    if (first == lane.queue.size()) return {};
    const Batch batch = densest_batch(lane, first, limit_of(lane));
    // Requests that would be late in it are passed over, as long as others would not
    // be.
    const size_t in_time = lane.queue.first_due_from(start + lane.exec(batch.batch_index));
    return in_time < lane.queue.size() ? densest_batch(lane, in_time, limit_of(lane)) : batch;
  }

  void on_model_added(const ModelInfo& model) override {
    if (model.id.value() >= learnt_.size()) learnt_.resize(model.id.value() + 1);
    learnt_[model.id.value()].assign(model.buckets.size(), Learnt{});
  }

  // The shortest SLO holds for some hundred requests, unless one as short comes again.
  void on_request(const LaneView& lane, const Request& request, TimePoint /*now*/) override {
    if (request.best_effort()) return;
    const Duration objective = (request.deadline - request.arrival).scaled(options_.objective_share);
    Duration& known = learnt(lane.key).objective;
    known = known == Duration::max() ? objective : std::min(objective, known + known / 128);
  }

  void on_exec(const Action& action, const Outcome& outcome) override {
    const LaneKey key{action.model, action.bucket};
    Learnt& its = learnt(key);
    its.limits.try_emplace(action.device, options_.method)
        .first->second.record(action.batch_size, outcome.duration, its.objective,
                              cluster_.batch_sizes(action.device, action.model));
  }

 private:
  struct Learnt {
    Duration objective = Duration::max();
    std::map<DeviceId, BatchLimit> limits;
  };
  Learnt& learnt(LaneKey key) { return learnt_[key.model.value()][key.bucket.value()]; }

  uint32_t limit_of(const LaneView& lane) const {
    const Learnt& its = learnt_[lane.key.model.value()][lane.key.bucket.value()];
    const auto found = its.limits.find(lane.device);
    return found == its.limits.end() ? 0 : found->second.batch_index(lane.batch_sizes());
  }

  const Cluster& cluster_;
  AdaptiveBatchingOptions options_;
  std::vector<std::vector<Learnt>> learnt_;  // [model][bucket]
};

}  // namespace

std::unique_ptr<Policy> make_adaptive_batching_policy(const Cluster& cluster, const AdaptiveBatchingOptions& options) {
  return std::make_unique<BatchingPolicy>(cluster, std::make_unique<AdaptiveBatchingRule>(cluster, options));
}

}  // namespace foliot::adaptive_batching
