#include "control/policies/deferred/deferred_policy.h"

#include <algorithm>
#include <cmath>

#include "control/policies/common/batching_policy.h"

namespace foliot::deferred {
namespace {

// Seconds of EXEC per row in batches of this size.
double seconds_per_row(const QueueView& queue, uint32_t batch_index) {
  return queue.exec(batch_index).to_seconds() / queue.batch_sizes()[batch_index];
}

// The EXEC time that the requests of about the last second ask for, in the largest
// batches, as a share of what the devices of one kind have.
class Load {
 public:
  void add(double seconds, TimePoint now) {
    decay(now);
    seconds_ += seconds;
  }
  double share(uint32_t devices) const { return seconds_ / (kSpanSeconds * devices); }

 private:
  static constexpr double kSpanSeconds = 1;
  void decay(TimePoint now) {
    seconds_ *= std::exp(-(now - updated_).to_seconds() / kSpanSeconds);
    updated_ = now;
  }
  double seconds_ = 0;
  TimePoint updated_;
};

class DeferredRule : public BatchingRule {
 public:
  explicit DeferredRule(const DeferredOptions& options) : options_(options) {}

  RequestQueue::Order order() const override { return RequestQueue::Order::kDeadline; }

  void on_request(const QueueView& queue, const Request& /*request*/, TimePoint now) override {
    load(queue).add(seconds_per_row(queue, largest(queue)), now);
  }

  Offer offer(const QueueView& queue, TimePoint now) const override {
    const Batch batch = choose(queue, now);
    if (batch.rows == 0) return {TimePoint::infinite_future()};
    const TimePoint deadline = queue.requests[batch.first].deadline;
    const TimePoint invalid_after = deadline - queue.exec(batch.batch_index);
    const Offer at_once{now, invalid_after.nanoseconds()};
    if (deadline.is_infinite() || batch.rows == queue.batch_sizes().back()) return at_once;
    const bool padded = batch.rows < queue.batch_sizes()[batch.batch_index];
    const uint32_t with_one_more = padded ? batch.batch_index : batch.batch_index + 1;
    const Duration slack = queue.exec(batch.batch_index).scaled(options_.slack);
    const TimePoint frontrun = std::min(deadline - queue.exec(with_one_more), invalid_after - slack);
    return {std::max(now, frontrun), invalid_after.nanoseconds()};
  }

  Batch choose(const QueueView& queue, TimePoint start) const override {
    const size_t first = queue.first_meetable(start);
    if (first == queue.requests.size()) return {};
    const uint32_t in_time = largest_in_time(queue, first, start);
    const Batch with_head = densest_batch(queue, first, in_time);
    if (in_time >= asked_for(queue) || queue.requests.size() - first == with_head.rows) return with_head;
    for (uint32_t index = largest(queue); index > in_time; --index) {
      const uint32_t rows = queue.batch_sizes()[index];
      const size_t without_head = queue.requests.first_due_from(start + queue.exec(index));
      if (queue.requests.size() - without_head >= rows) return {without_head, rows, index};
    }
    return with_head;
  }

 private:
  static uint32_t largest(const QueueView& queue) { return static_cast<uint32_t>(queue.batch_sizes().size()) - 1; }

  // The smallest batch size whose rows take no more time than the devices have.
  uint32_t asked_for(const QueueView& queue) const {
    const double share = std::min(1.0, load_share(queue));
    const double affordable = seconds_per_row(queue, largest(queue)) / share;
    uint32_t index = 0;
    while (index < largest(queue) && seconds_per_row(queue, index) > affordable) ++index;
    return index;
  }

  static uint16_t kind(const QueueView& queue) { return queue.cluster.device(queue.device).kind().value(); }
  Load& load(const QueueView& queue) {
    if (kind(queue) >= loads_.size()) loads_.resize(kind(queue) + size_t{1});
    return loads_[kind(queue)];
  }
  double load_share(const QueueView& queue) const {
    if (kind(queue) >= loads_.size()) return 0;
    return loads_[kind(queue)].share(queue.cluster.device_count(KindId(kind(queue))));
  }

  DeferredOptions options_;
  std::vector<Load> loads_;  // by kind of device
};

}  // namespace

std::unique_ptr<Policy> make_deferred_policy(const Cluster& cluster, const DeferredOptions& options) {
  return std::make_unique<BatchingPolicy>(cluster, std::make_unique<DeferredRule>(options));
}

}  // namespace foliot::deferred
