#include "answer/selection/combined_answer.h"

#include <chrono>

namespace foliot {

void CombinedAnswer::settle() {
  settled_ = now_();
  late_ = settled_ > parts_.deadline;
  if (parts_.timer != nullptr) parts_.timer->record(parts_.due, settled_);
  if (late_) return parts_.counters->count_failed(settled_ - parts_.arrival);
  Completion completion;
  completion.arrival = completion.exec_start = parts_.arrival;
  completion.finished = settled_;
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(since_1970).count();
  parts_.counters->count_served(parts_.rows, completion, static_cast<uint64_t>(milliseconds));
}

}  // namespace foliot
