// FakeJobLease: a lease in memory, with a clock that its test turns. Calls that arrive late, or whose answers are lost,
// are the test's to make.
#ifndef FOLIOT_EDGE_JOBS_FAKE_JOB_LEASE_H_
#define FOLIOT_EDGE_JOBS_FAKE_JOB_LEASE_H_

#include <string>

#include "edge/jobs/job_lease.h"

namespace foliot {

class FakeJobLease final : public JobLease {
 public:
  void set_now(TimePoint now) { now_ = now; }
  const std::string& holder() {
    if (now_ >= until_) holder_.clear();
    return holder_;
  }

  Result<JobLeaseReply> take(const std::string& token, Duration lease) override {
    if (holder().empty()) {
      holder_ = token;
      until_ = now_ + lease;
    }
    return renew(token, lease);
  }
  Result<JobLeaseReply> renew(const std::string& token, Duration lease) override {
    const bool is_mine = holder() == token;
    if (is_mine) until_ = now_ + lease;
    return JobLeaseReply{is_mine, holder_};
  }
  Status release(const std::string& token) override {
    if (holder() == token) holder_.clear();
    return Status();
  }

 private:
  TimePoint now_{};
  TimePoint until_{};
  std::string holder_;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_FAKE_JOB_LEASE_H_
