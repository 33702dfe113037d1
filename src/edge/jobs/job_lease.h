// JobLease: the right to run jobs, which one of several servers has at a time, until it ends by the store's clock. A
// port: RedisJobLease is the real one, FakeJobLease has a clock that a test turns.
//
// A token is of one time of keeping: it is random, and never used again once it was lost.
//
// A call that failed may have been made, or be made later.
#ifndef FOLIOT_EDGE_JOBS_JOB_LEASE_H_
#define FOLIOT_EDGE_JOBS_JOB_LEASE_H_

#include <string>

#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

struct JobLeaseReply {
  bool is_mine = false;
  std::string holder{};  // its name, for operators; empty: none
};

// Threading: one at a time. All functions block. Errors: kUnavailable naming the store.
class JobLease {
 public:
  virtual ~JobLease() = default;
  // It is the token's, if it is free, or this token's: for so long from when the store does it.
  virtual Result<JobLeaseReply> take(const std::string& token, Duration lease) = 0;
  // The same, only if the token has it.
  virtual Result<JobLeaseReply> renew(const std::string& token, Duration lease) = 0;
  // It is free, if it was the token's.
  virtual Status release(const std::string& token) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_JOB_LEASE_H_
