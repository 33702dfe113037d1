#include "control/policies/adaptive_batching/adaptive_batching_policy.h"

#include <algorithm>
#include <map>
#include <utility>

#include "control/policies/common/batching_policy.h"

namespace foliot::adaptive_batching {
namespace {

class AdaptiveBatchingRule : public BatchingRule {
 public:
  AdaptiveBatchingRule(const Cluster& cluster, const AdaptiveBatchingOptions& options)
      : cluster_(cluster), options_(options) {}

  RequestQueue::Order order() const override { return RequestQueue::Order::kArrival; }

  Offer offer(const QueueView& queue, TimePoint now) const override {
    const uint32_t limit = queue.batch_sizes()[limit_of(queue)];
    return {queue.requests.size() >= limit ? now : std::max(now, queue.requests[0].place.order + options_.batch_delay)};
  }

  Batch choose(const QueueView& queue, TimePoint start) const override {
    const size_t first = queue.first_meetable(start);
    if (first == queue.requests.size()) return {};
    const Batch batch = densest_batch(queue, first, limit_of(queue));
    // Requests that would be late in it are passed over, as long as others would not
    // be.
    const size_t in_time = queue.requests.first_due_from(start + queue.exec(batch.batch_index));
    return in_time < queue.requests.size() ? densest_batch(queue, in_time, limit_of(queue)) : batch;
  }

  void on_model_added(const ModelInfo& model) override {
    if (model.id.value() >= learnt_.size()) learnt_.resize(model.id.value() + 1);
    learnt_[model.id.value()].assign(model.buckets.size(), Learnt{});
  }

  // Follows the median of the SLOs. Not the shortest: in an overload requests have waited in their
  // sockets, and have little of their time left, or none.
  void on_request(const QueueView& queue, const Request& request, TimePoint /*now*/) override {
    if (request.best_effort()) return;
    const Duration objective = (request.deadline - request.arrival).scaled(options_.objective_share);
    if (objective <= Duration()) return;
    Duration& known = learnt(queue.key).objective;
    if (known == Duration::max()) known = objective;
    const Duration step = known / 128 + Duration::microseconds(1);
    known = objective > known ? std::min(objective, known + step) : std::max(objective, known - step);
  }

  void on_exec(const Action& action, const Outcome& outcome) override {
    const QueueKey key{action.model, action.bucket};
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
  Learnt& learnt(QueueKey key) { return learnt_[key.model.value()][key.bucket.value()]; }

  uint32_t limit_of(const QueueView& queue) const {
    const Learnt& its = learnt_[queue.key.model.value()][queue.key.bucket.value()];
    const auto found = its.limits.find(queue.device);
    return found == its.limits.end() ? 0 : found->second.batch_index(queue.batch_sizes());
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
