#include "observe/request_log/executor_timelines.h"

#include <algorithm>

namespace foliot {

std::span<ExecutorTimelines::Timeline> ExecutorTimelines::timelines(const Action& action) {
  const size_t device = action.device.value();
  if (device >= timelines_.size()) timelines_.resize(device + 1);
  const bool infer = action.type == ActionType::kInfer;
  const size_t first = infer ? 1 + action.lanes.first : 0, count = infer ? action.lanes.count : 1;
  std::vector<Timeline>& of_device = timelines_[device];
  if (of_device.size() < first + count) of_device.resize(first + count);
  return std::span(of_device).subspan(first, count);
}

// An executor does what it was sent one after the other, and an EXEC begins when all its lanes are free.
TimePoint ExecutorTimelines::send(const Action& action, TimePoint now) {
  if (action.type == ActionType::kUnload) return TimePoint::infinite_future();
  const TimePoint soonest = std::max(now, action.earliest);
  TimePoint start = soonest;
  for (Timeline& executor : timelines(action)) {
    if (executor.count == 0) executor.begun = soonest;
    start = std::max(start, executor.begun + executor.pending);
    executor.pending += action.expected;
    ++executor.count;
  }
  return start;
}

void ExecutorTimelines::end(const Action& action, const Outcome& outcome) {
  if (action.type == ActionType::kUnload) return;
  for (Timeline& executor : timelines(action)) {
    executor.begun = std::max(executor.begun, outcome.end);
    executor.pending -= action.expected;
    --executor.count;
  }
}

}  // namespace foliot
