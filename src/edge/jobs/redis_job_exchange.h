// RedisJobExchange: what servers that share jobs exchange through Redis: what became of jobs, and changes for
// the keeper with their answers.
//
// Errors: those of RedisConnection; kInvalidArgument if the jobs are of a newer version.
//
// Threading: one at a time. All functions block as RedisConnection's.
#ifndef FOLIOT_EDGE_JOBS_REDIS_JOB_EXCHANGE_H_
#define FOLIOT_EDGE_JOBS_REDIS_JOB_EXCHANGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "edge/jobs/job_copy.h"
#include "foundation/base/status.h"
#include "foundation/net/redis_connection.h"

namespace foliot {

class RedisJobExchange {
 public:
  static constexpr size_t kPassedMax = 64;  // changes that wait for the keeper, of all servers

  explicit RedisJobExchange(RedisAddress address) : connection_(std::move(address)) {}

  // Nothing, if it is connected.
  Status connect() { return connection_.connect(); }
  // What changed after the revision `since`, the oldest first.
  struct News {
    std::vector<RevisedJob> changed;
    std::vector<std::string> damaged{};  // what is no job, and is left out
    uint64_t read = 0;                   // up to which revision this is
    uint64_t last = 0;                   // revision of all, when this was read
    uint64_t jobs = 0;                   // how many there are
    bool is_all = false;                 // else there is more
  };
  Result<News> read(uint64_t since);
  struct Ids {
    std::set<std::string, std::less<>> ids;
    uint64_t last = 0;
  };
  Result<Ids> read_ids();

  // For the keeper; `change`: any text, of no two the same. False: kPassedMax wait. All are dropped when none was
  // added for a minute: their servers have given them up.
  Result<bool> pass(const std::string& change);
  // Whether it was there still. If so, it will not be done.
  Result<bool> withdraw(const std::string& change);
  // The oldest, at most so many, if this token keeps the jobs.
  Result<std::vector<std::string>> take(const std::string& token, size_t most);
  // Of the change of this id; it is there for a minute.
  Status answer(const std::string& id, const std::string& answer);
  // Of each id its answer, if there is one.
  Result<std::vector<std::optional<std::string>>> answers(const std::vector<std::string>& ids);

  // What this key has: `value`, if it had nothing before.
  Result<std::string> agree_on_folder(const std::string& value);
  // Whether the server writes to a disk what it has; nullopt: it does not say.
  Result<std::optional<bool>> is_persistent();

 private:
  RedisConnection connection_;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_REDIS_JOB_EXCHANGE_H_
