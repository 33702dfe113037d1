// Where shared jobs are in Redis, for RedisJobLease, RedisJobStore and RedisJobExchange.
//
//   lease      of the keeper of the jobs: a token and a name; goes when the lease ends
//   form       the version of all of this
//   jobs       a hash: of each job its JSON, by id
//   revisions  a sorted set: of each id the revision of its last change
//   revision   the last one. They are instants in microseconds, or one more than the last: they never come again
//   writer     a hash: the token that wrote last, and the number of its write
//   changes    a list: submissions and cancellations for the keeper
//   answer:ID  what became of one of these, for a minute
//   folder     what the file .foliot/shared of the folder of jobs has
//
// All have one slot of a Redis cluster.
#ifndef FOLIOT_EDGE_JOBS_REDIS_JOB_KEYS_H_
#define FOLIOT_EDGE_JOBS_REDIS_JOB_KEYS_H_

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "foundation/base/status.h"
#include "foundation/net/redis_address.h"

namespace foliot {

inline constexpr uint64_t kRedisJobForm = 1;  // a newer program raises it

inline std::string redis_job_key(std::string_view what) { return fmt::format("foliot:{{jobs}}:{}", what); }

// `form`: what is there. kInvalidArgument, if it is not this program's.
inline Status refuse_redis_job_form(const RedisAddress& address, std::string_view form) {
  return Status::invalid_argument(
      fmt::format("{}: its jobs were written by a newer Foliot, in form {}; this one reads form {}: use the newer one, "
                  "or give --jobs-store another database",
                  address.text(), form, kRedisJobForm));
}

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_REDIS_JOB_KEYS_H_
