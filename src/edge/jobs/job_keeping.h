// JobKeeping: whether this server keeps the jobs that it shares with others: a state machine over a JobLease, which
// takes time as an argument.
//
//   follower --(taken)--> keeper --(not renewed in time, or another has it)--> follower, with a new token
//
// The keeper counts from before a call was sent, and ends `margin` before the store can give the lease to another. So
// there are never two keepers, as long as clocks run alike within margin / lease (a fifth), and the store loses
// nothing. What a keeper does after that, since it stood still, is refused by the store, which compares tokens.
//
// An answer that comes after the end revives nothing: what ran was stopped meanwhile.
//
// Threading: not thread-safe.
#ifndef FOLIOT_EDGE_JOBS_JOB_KEEPING_H_
#define FOLIOT_EDGE_JOBS_JOB_KEEPING_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "edge/jobs/job_lease.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

struct JobKeepingTimes {
  // How long jobs stand still at most once their keeper is gone. Shorter ones end with each hiccup of the store.
  Duration lease = Duration::seconds(10);
  // In which what runs is ended, and by which clocks may differ over a lease.
  Duration margin = Duration::seconds(2);
  // Of a follower, and of a keeper whose renewal failed.
  Duration retry = Duration::milliseconds(500);
};

class JobKeeping {
 public:
  // `make_token`: of no two calls the same.
  JobKeeping(const JobKeepingTimes& times, std::function<std::string()> make_token)
      : times_(times), make_token_(std::move(make_token)), token_(make_token_()) {}

  struct Call {
    bool renews = false;  // else it takes
    std::string token{};
  };
  // What to call now, once: answered() follows. nullopt: nothing before next_call().
  std::optional<Call> next(TimePoint now);
  TimePoint next_call() const { return next_call_; }
  // Of the last call. `is_mine`: the lease's answer.
  void answered(const Result<bool>& is_mine, TimePoint now);

  // Does not keep, and takes nothing for so long.
  void yield(TimePoint now, Duration pause) { become_follower(now + pause); }

  // Until then it keeps jobs, with this token.
  TimePoint kept_until() const { return kept_until_; }
  bool keeps(TimePoint now) const { return now < kept_until_; }
  const std::string& token() const { return token_; }

 private:
  void become_follower(TimePoint next_call);

  const JobKeepingTimes times_;
  const std::function<std::string()> make_token_;
  std::string token_;
  bool is_keeper_ = false;  // since an answer said so; also after kept_until_, until the next call
  TimePoint kept_until_{};
  TimePoint next_call_{};
  TimePoint sent_at_{};
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_JOB_KEEPING_H_
