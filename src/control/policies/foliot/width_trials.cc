#include "control/policies/foliot/width_trials.h"

#include <algorithm>
#include <bit>

namespace foliot::foliot_policy {
namespace {

// That threads meet takes up to some 50 us of an EXEC: of longer ones too little to matter.
constexpr Duration kShort = Duration::milliseconds(1);
// Of so many EXECs one is a trial, however often the width was tried.
constexpr uint32_t kTriedEvery = 512;
// So many times as long as all its work takes on fewer lanes no EXEC takes there.
constexpr double kImplausible = 1.25;
// What others wait longer for, where all EXECs take all lanes since others cannot wait.
constexpr Duration kLongerMax = Duration::microseconds(250);
// One in so many parts of the time that requests have is to be left.
constexpr int64_t kTimeLeft = 2;

}  // namespace

LaneInterval WidthTrials::lanes_for(DeviceId device, Batch& batch, LaneInterval lanes, TimePoint now, TimePoint start,
                                    bool divides) const {
  if (device.value() >= counts_.size() || batch.in_parts || batch.head.offline) return lanes;
  const Counts* const counts = counts_[device.value()].find(key(batch.model, batch.bucket));
  if (counts == nullptr) return lanes;
  const uint32_t count = board_.cluster().device(device).lane_count();
  ExecShape shape{device, batch.model, batch.bucket, batch.batch_index, width_index(lanes.count, count)};
  const ExecShape chosen = shape;
  for (shape.width_index = 0; shape.width_index < width_count(count); ++shape.width_index) {
    const uint32_t width = width_at(shape.width_index, count);
    if (width == lanes.count || width > batch.lanes_max || !is_due(*counts, shape.width_index)) continue;
    if (!is_worth_it(shape, chosen, divides)) continue;
    const LaneInterval tried{width == count ? 0 : lanes.first / width * width, width};
    const bool fits =
        tried.end() <= count && (width < lanes.count || may_widen(device, batch.model, tried, now, start));
    const std::optional<TimePoint> latest = fits ? latest_start(batch, shape, start) : std::nullopt;
    if (!latest) continue;
    batch.latest = std::min(batch.latest, *latest);
    batch.is_trial = true;
    return tried;
  }
  return lanes;
}

void WidthTrials::sent(DeviceId device, const Batch& batch, LaneInterval lanes) {
  if (device.value() >= counts_.size()) counts_.resize(device.value() + 1);
  const uint32_t count = board_.cluster().device(device).lane_count();
  Counts& counts = counts_[device.value()][key(batch.model, batch.bucket)];
  Width& width = counts.widths[width_index(lanes.count, count)];
  ++counts.all;
  if (batch.is_trial) {
    ++width.trials;
  } else {
    width = {.chosen_at = counts.all, .trials = 0};
  }
}

void WidthTrials::forget(ModelId model, size_t buckets) {
  for (FlatMap<uint64_t, Counts>& counts : counts_) {
    for (size_t bucket = 0; bucket < buckets; ++bucket)
      counts.erase(key(model, BucketId(static_cast<uint16_t>(bucket))));
  }
}

bool WidthTrials::is_due(const Counts& counts, uint32_t width_index) {
  const Width& width = counts.widths[width_index];
  const uint32_t since = counts.all - width.chosen_at;
  return width.trials < static_cast<uint32_t>(std::bit_width(since / 2)) + since / kTriedEvery;
}

bool WidthTrials::is_worth_it(const ExecShape& tried, const ExecShape& chosen, bool divides) const {
  const DurationModel& durations = board_.cluster().durations();
  const uint32_t count = board_.cluster().device(tried.device).lane_count();
  const Duration exec = durations.exec(tried);
  const Duration before = durations.exec(chosen);
  if (!divides && exec > before + kLongerMax) return false;
  const double fewer = static_cast<double>(width_at(chosen.width_index, count)) / width_at(tried.width_index, count);
  return before <= kShort || exec > before.scaled(kImplausible * std::max(1.0, fewer));
}

std::optional<TimePoint> WidthTrials::latest_start(const Batch& batch, const ExecShape& tried, TimePoint start) const {
  const RequestQueue::Entry& head = board_.model(batch.model).queues[batch.bucket.value()][batch.first];
  if (head.deadline.is_infinite()) return head.deadline;
  const TimePoint latest =
      head.deadline - board_.cluster().durations().exec(tried) - board_.cluster().margin(tried.device);
  if (latest - (head.deadline - head.place.arrival) / kTimeLeft < start) return std::nullopt;
  return latest;
}

bool WidthTrials::may_widen(DeviceId device, ModelId model, LaneInterval lanes, TimePoint now, TimePoint start) const {
  if (board_.cluster().device(device).exec_available(now, lanes) > start) return false;
  bool alone = true;
  board_.waiting().for_each_common(board_.loaded(device), [&](uint32_t id) { alone = alone && ModelId(id) == model; });
  return alone;
}

}  // namespace foliot::foliot_policy
