#include "control/policies/foliot/lane_choice.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

namespace foliot::foliot_policy {
namespace {

// Of more models that wait on a device, so many are looked at.
constexpr uint32_t kModelsMax = 16;
// More lanes are worth it if they take so much off the time.
constexpr double kGainLeast = 0.05;
// What later batches wait counts so much beside when those end that are there. Chosen on one set
// of loads (docs/decisions/0110, 0240).
constexpr double kLaterWeight = 0.5;
// A width that would keep its intervals busier than this, were batches as large as can fill in
// time, does not keep up, and is only taken if none takes less of the device's time.
constexpr double kBusyMax = 0.95;
// Of more batches that wait, so many are laid out, or as many as there are lanes.
constexpr uint32_t kLaidOutMax = 16;

}  // namespace

LaneChoice::LaneChoice(const Board& board, DeviceId device, TimePoint now, bool divides, bool overloaded)
    : board_(board), device_(board.cluster().device(device)), now_(now) {
  const uint32_t count = device_.lane_count();
  find(divides ? 1 : count);
  if (count == lanes_.count) return;
  const Waiting waiting = look();
  const uint32_t best = best_width(waiting);
  find(overloaded ? best : std::max(best, waiting.width));
}

uint32_t LaneChoice::best_width(const Waiting& waiting) const {
  const uint32_t count = device_.lane_count();
  const auto exec = [&](uint32_t index) { return waiting.exec[index].scaled(1 / std::max(1.0, waiting.batches)); };
  const auto share = [&](uint32_t index) {  // of the device's time
    return board_.demanded_exec(device_.id(), index).grown / (count / width_at(index, count));
  };
  Duration least_share = Duration::max();
  for (uint32_t i = 0; i < width_count(count); ++i) least_share = std::min(least_share, share(i));
  uint32_t best = 1;
  Duration soonest = Duration::max();
  for (uint32_t i = 1; i <= width_count(count); ++i) {  // from the narrowest on
    const uint32_t index = i % width_count(count);
    const uint32_t width = width_at(index, count);
    const ExecDemand::Exec demanded = board_.demanded_exec(device_.id(), index);
    if (busy_share(demanded.grown, width) > kBusyMax && share(index) > least_share) continue;
    // Others wait for an EXEC in proportion to what it takes.
    const Duration later = mean_wait(exec(index), width, std::min(busy_share(demanded.now, width), kBusyMax));
    const Duration end = mean_end(waiting, exec(index), width) + later.scaled(kLaterWeight);
    if (end.scaled(1 + kGainLeast) > soonest) continue;
    best = width;
    soonest = end;
  }
  return best;
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
  Waiting waiting;
  board_.for_each_candidate(device_.id(), kModelsMax, {0, start_}, [&](ModelId id) {
    const ModelState& state = board_.model(id);
    const std::span<const uint32_t> sizes = board_.cluster().batch_sizes(device_.id(), id);
    const double share = 1 / std::max<double>(1, state.holders.size());
    for (uint16_t b = 0; b < state.queues.size(); ++b) {
      const RequestQueue& queue = state.queues[b];
      if (queue.empty()) continue;
      const auto fits = std::ranges::lower_bound(sizes.first(sizes.size() - 1), queue.size());
      add(waiting, id, BucketId(b), share * std::ceil(static_cast<double>(queue.size()) / sizes.back()),
          static_cast<uint32_t>(fits - sizes.begin()));
      if (queue.with_deadline() == 0) continue;
      waiting.width = std::max(waiting.width, width_for(id, BucketId(b), queue[0].deadline));
    }
  });
  return waiting;
}

void LaneChoice::add(Waiting& waiting, ModelId model, BucketId bucket, double batches, uint32_t batch_index) const {
  const uint32_t count = device_.lane_count();
  waiting.batches += batches;
  for (uint32_t i = 0; i < width_count(count); ++i) {
    waiting.exec[i] += board_.lane_exec({device_.id(), model, bucket, batch_index, i}).scaled(batches);
  }
}

Duration LaneChoice::mean_end(const Waiting& waiting, Duration exec, uint32_t width) const {
  const uint32_t count = device_.lane_count();
  std::array<Duration, kLanesMax> free;  // by interval, from start_ on
  for (uint32_t i = 0; i < count / width; ++i) free[i] = device_.exec_available(now_, {i * width, width}) - start_;
  const auto intervals = std::span(free).first(count / width);
  const auto batches =
      static_cast<uint32_t>(std::clamp(waiting.batches, 1.0, static_cast<double>(std::max(kLaidOutMax, count))));
  Duration sum;
  for (uint32_t batch = 0; batch < batches; ++batch) {
    Duration& first = *std::ranges::min_element(intervals);
    first += exec;
    sum += first;
  }
  return sum / batches;
}

double LaneChoice::busy_share(Duration exec, uint32_t width) const {
  const uint32_t servers = device_.lane_count() / width;
  return board_.exec_demand(device_.id(), now_) * exec.to_seconds() / servers;
}

Duration LaneChoice::mean_wait(Duration exec, uint32_t width, double busy) const {
  const double servers = device_.lane_count() / width;
  return exec.scaled(std::pow(busy, std::sqrt(2 * (servers + 1)) - 1) / (servers * (1 - busy)));
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
  if (lanes_.count == 1) return lanes_;
  const uint32_t count = device_.lane_count();
  const DurationModel& durations = board_.cluster().durations();
  const auto exec = [&](uint32_t width) {
    return durations.exec({device_.id(), batch.model, batch.bucket, batch.batch_index, width_index(width, count)});
  };
  uint32_t width = std::min(lanes_.count, batch.lanes_max);
  const Duration bearable = exec(width).scaled(1 + kGainLeast);
  for (uint32_t narrower = 1; narrower < width; narrower *= 2) {
    if (exec(narrower) > bearable) continue;
    width = narrower;
    break;
  }
  return {lanes_.first, width};
}

}  // namespace foliot::foliot_policy
