#include "edge/jobs/job_keeping.h"

namespace foliot {

void JobKeeping::become_follower(TimePoint next_call) {
  is_keeper_ = false;
  kept_until_ = TimePoint();
  next_call_ = next_call;
  token_ = make_token_();
}

std::optional<JobKeeping::Call> JobKeeping::next(TimePoint now) {
  if (is_keeper_ && !keeps(now)) become_follower(now);
  if (now < next_call_) return std::nullopt;
  sent_at_ = now;
  return Call{.renews = is_keeper_, .token = token_};
}

void JobKeeping::answered(const Result<bool>& is_mine, TimePoint now) {
  if (is_keeper_ && (!keeps(now) || (is_mine.ok() && !*is_mine))) return become_follower(now);
  if (!is_mine.ok() || !*is_mine) {
    // A call of a follower that failed may have been made: its token stays, so that the next one finds its own lease.
    next_call_ = now + times_.retry;
    return;
  }
  is_keeper_ = true;
  kept_until_ = sent_at_ + times_.lease - times_.margin;
  next_call_ = sent_at_ + times_.lease / 3;
}

}  // namespace foliot
