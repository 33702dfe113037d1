// RedisJobLease: the lease of shared jobs in Redis.
//
// Threading, errors: as JobLease.
#ifndef FOLIOT_EDGE_JOBS_REDIS_JOB_LEASE_H_
#define FOLIOT_EDGE_JOBS_REDIS_JOB_LEASE_H_

#include <string>
#include <utility>

#include "edge/jobs/job_lease.h"
#include "foundation/net/redis_connection.h"

namespace foliot {

class RedisJobLease final : public JobLease {
 public:
  // `name`: of this server, for operators.
  RedisJobLease(RedisAddress address, std::string name) : connection_(std::move(address)), name_(std::move(name)) {}

  Result<JobLeaseReply> take(const std::string& token, Duration lease) override;
  Result<JobLeaseReply> renew(const std::string& token, Duration lease) override;
  Status release(const std::string& token) override;

 private:
  Result<JobLeaseReply> call(const char* script, const std::string& token, Duration lease);

  RedisConnection connection_;
  const std::string name_;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_REDIS_JOB_LEASE_H_
