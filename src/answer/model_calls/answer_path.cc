#include "answer/model_calls/answer_path.h"

#include <algorithm>

namespace foliot {
namespace {

// Mean of what is assumed before anything is measured.
constexpr Duration kPrior = Duration::microseconds(50);
// Of the answers, so many take longer.
constexpr double kLongerShare = 1e-3;
constexpr Duration kRefusalsAfter = Duration::seconds(1);

}  // namespace

AnswerPath::AnswerPath() : window_(kPrior) { update(); }

void AnswerPath::record(Duration measured, bool served, TimePoint now) {
  if (!mutex_.try_lock()) return;
  const MutexLock lock(mutex_, std::adopt_lock);
  if (!served && now < refusals_from_) return;
  if (served) refusals_from_ = now + kRefusalsAfter;
  if (window_.record(std::max(measured, Duration()), now)) update();
}

void AnswerPath::update() {
  length_.store(std::max(window_.tail(kLongerShare), window_.recent()).nanoseconds(), std::memory_order_relaxed);
}

}  // namespace foliot
