// RedisJobStore: jobs in Redis, which several servers share. The one that has the lease writes: each write is one
// script, which first compares the token. So a server that has lost the lease changes nothing, however late it notices.
//
// Writes are numbered, and Redis refuses one that comes after a later one: a write whose answer did not come in time
// may be made when its server goes on, and must not undo what was written since.
//
// Errors, beside those of JobStore: kUnavailable naming the server that has the lease. If the jobs are of a newer
// version, kInvalidArgument of read(), and kUnavailable of others.
#ifndef FOLIOT_EDGE_JOBS_REDIS_JOB_STORE_H_
#define FOLIOT_EDGE_JOBS_REDIS_JOB_STORE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "edge/jobs/job_store.h"
#include "foundation/net/redis_connection.h"

namespace foliot {

class RedisJobStore final : public JobStore {
 public:
  // What was written, before its call returns.
  struct Reports {
    std::function<void(const Job& job, uint64_t revision)> on_put = [](const Job&, uint64_t) {};
    std::function<void(const std::string& id)> on_removed = [](const std::string&) {};
    // What read() leaves out, since it is no job, and why. It stays where it is.
    std::function<void(const std::string& what)> on_damaged = [](const std::string&) {};
  };
  // `token`: of the lease. There is one store of a token.
  RedisJobStore(RedisAddress address, std::string token, Reports reports)
      : connection_(std::move(address)), token_(std::move(token)), reports_(std::move(reports)) {}
  RedisJobStore(RedisAddress address, std::string token) : RedisJobStore(std::move(address), std::move(token), {}) {}

  Result<std::vector<Job>> read() override;
  Status put(const Job& job) override;
  Status remove(const std::string& id) override;

 private:
  // Removes it, if the JSON is empty. The revision; 0: it was removed.
  Result<uint64_t> write(const std::string& id, const std::string& json);

  RedisConnection connection_;
  const std::string token_;
  const Reports reports_;
  uint64_t writes_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_REDIS_JOB_STORE_H_
