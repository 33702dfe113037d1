#include "policies/deferred/deferred_policy.h"

#include <algorithm>
#include <cmath>

#include "policies/common/batching_policy.h"

namespace foliot::deferred {
namespace {

// Seconds of EXEC per row in batches of this size.
double seconds_per_row(const LaneView& lane, uint32_t batch_index) {
  return lane.exec(batch_index).to_seconds() / lane.batch_sizes()[batch_index];
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

  Lane::Order order() const override { return Lane::Order::kDeadline; }

  void on_request(const LaneView& lane, const Request& /*request*/, TimePoint now) override {
    load(lane).add(seconds_per_row(lane, largest(lane)), now);
  }

  Offer offer(const LaneView& lane, TimePoint now) const override {
    const Batch batch = choose(lane, now);
    if (batch.rows == 0) return {TimePoint::infinite_future()};
    const TimePoint deadline = lane.queue[batch.first].deadline;
    const TimePoint invalid_after = deadline - lane.exec(batch.batch_index);
    const Offer at_once{now, invalid_after.nanoseconds()};
    if (deadline.is_infinite() || batch.rows == lane.batch_sizes().back()) return at_once;
    const bool padded = batch.rows < lane.batch_sizes()[batch.batch_index];
    const uint32_t with_one_more = padded ? batch.batch_index : batch.batch_index + 1;
    const Duration slack = lane.exec(batch.batch_index).scaled(options_.slack);
    const TimePoint frontrun = std::min(deadline - lane.exec(with_one_more), invalid_after - slack);
    return {std::max(now, frontrun), invalid_after.nanoseconds()};
  }

  Batch choose(const LaneView& lane, TimePoint start) const override {
    const size_t first = lane.first_meetable(start);
    if (first == lane.queue.size()) return {};
    const uint32_t in_time = largest_in_time(lane, first, start);
    const Batch with_head = densest_batch(lane, first, in_time);
    if (in_time >= asked_for(lane) || lane.queue.size() - first == with_head.rows) return with_head;
    for (uint32_t index = largest(lane); index > in_time; --index) {
      const uint32_t rows = lane.batch_sizes()[index];
      const size_t without_head = lane.queue.first_due_from(start + lane.exec(index));
      if (lane.queue.size() - without_head >= rows) return {without_head, rows, index};
    }
    return with_head;
  }

 private:
  static uint32_t largest(const LaneView& lane) { return static_cast<uint32_t>(lane.batch_sizes().size()) - 1; }

  // The smallest batch size whose rows take no more time than the devices have.
  uint32_t asked_for(const LaneView& lane) const {
    const double share = std::min(1.0, load_share(lane));
    const double affordable = seconds_per_row(lane, largest(lane)) / share;
    uint32_t index = 0;
    while (index < largest(lane) && seconds_per_row(lane, index) > affordable) ++index;
    return index;
  }

  static uint16_t kind(const LaneView& lane) { return lane.cluster.device(lane.device).kind().value(); }
  Load& load(const LaneView& lane) {
    if (kind(lane) >= loads_.size()) loads_.resize(kind(lane) + size_t{1});
    return loads_[kind(lane)];
  }
  double load_share(const LaneView& lane) const {
    if (kind(lane) >= loads_.size()) return 0;
    return loads_[kind(lane)].share(lane.cluster.device_count(KindId(kind(lane))));
  }

  DeferredOptions options_;
  std::vector<Load> loads_;  // by kind of device
};

}  // namespace

std::unique_ptr<Policy> make_deferred_policy(const Cluster& cluster, const DeferredOptions& options) {
  return std::make_unique<BatchingPolicy>(cluster, std::make_unique<DeferredRule>(options));
}

}  // namespace foliot::deferred
