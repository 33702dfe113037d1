#include "policies/foliot/lane_choice.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace foliot::foliot_policy {
namespace {

// Of more models that wait on a device, so many are looked at.
constexpr uint32_t kModelsMax = 16;
// More lanes are worth it if they take so much off the time.
constexpr double kGainLeast = 0.05;

}  // namespace

LaneChoice::LaneChoice(const Board& board, DeviceId device, TimePoint now)
    : board_(board), device_(board.cluster().device(device)), now_(now) {
  const uint32_t count = device_.lane_count();
  find(1);
  if (count == 1) return;
  uint32_t free = 0;
  for (uint32_t lane = 0; lane < count; ++lane) {
    if (device_.exec_available(now, {lane, 1}) <= start_) ++free;
  }
  const Waiting waiting = look();
  const double share = free / std::max(1.0, waiting.batches);
  uint32_t width = 1;
  for (uint32_t i = 0; i < width_count(count); ++i) {
    const uint32_t wider = width_at(i, count);
    if (wider <= share) width = std::max(width, wider);
  }
  // Lanes that are free need not be neighbours.
  const TimePoint first = start_;
  find(width);
  while (start_ > first && lanes_.count > 1) find(std::bit_floor(lanes_.count - 1));
  if (waiting.width > lanes_.count) find(waiting.width);
}

bool LaneChoice::widen() {
  const uint32_t count = device_.lane_count();
  if (lanes_.count == count) return false;
  find(std::min<uint32_t>(2u * lanes_.count, count));
  return true;
}

void LaneChoice::find(uint32_t width) {
  start_ = TimePoint::infinite_future();
  for (uint32_t first = 0; first + width <= device_.lane_count(); first += width) {
    const LaneInterval lanes{first, width};
    const TimePoint free = device_.exec_available(now_, lanes);
    if (free >= start_) continue;
    lanes_ = lanes;
    start_ = free;
  }
}

LaneChoice::Waiting LaneChoice::look() const {
  const uint32_t lanes = device_.lane_count();
  Waiting waiting;
  board_.for_each_candidate(device_.id(), kModelsMax, [&](ModelId id) {
    const ModelState& state = board_.model(id);
    const uint32_t largest = board_.cluster().batch_sizes(device_.id(), id).back();
    waiting.batches +=
        std::ceil(static_cast<double>(state.queued) / largest) / std::max<double>(1, state.holders.size());
    for (uint16_t bucket = 0; bucket < state.queues.size(); ++bucket) {
      const RequestQueue& queue = state.queues[bucket];
      if (queue.with_deadline() == 0) continue;
      waiting.width = std::max(waiting.width, width_for(id, BucketId(bucket), queue[0].deadline));
    }
  });
  waiting.batches = std::min<double>(waiting.batches, lanes);
  return waiting;
}

uint32_t LaneChoice::width_for(ModelId model, BucketId bucket, TimePoint deadline) const {
  const uint32_t count = device_.lane_count();
  const TimePoint end = deadline - board_.cluster().margin(device_.id());
  for (uint32_t i = 1; i <= width_count(count); ++i) {  // from the narrowest on
    const uint32_t index = i % width_count(count);
    const Duration exec = board_.cluster().durations().exec({device_.id(), model, bucket, 0, index});
    if (start_ + exec <= end) return width_at(index, count);
  }
  return 1;  // none would do
}

LaneInterval LaneChoice::fewest_for(const Batch& batch) const {
  const uint32_t count = device_.lane_count();
  const DurationModel& durations = board_.cluster().durations();
  const auto exec = [&](uint32_t width) {
    return durations.exec({device_.id(), batch.model, batch.bucket, batch.batch_index, width_index(width, count)});
  };
  uint32_t width = lanes_.count;
  const Duration bearable = exec(width).scaled(1 + kGainLeast);
  for (uint32_t narrower = 1; narrower < lanes_.count; narrower *= 2) {
    if (exec(narrower) > bearable) continue;
    width = narrower;
    break;
  }
  return {lanes_.first, width};
}

}  // namespace foliot::foliot_policy
