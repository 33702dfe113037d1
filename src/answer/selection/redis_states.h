// RedisStates: shared states in Redis 7 or later (or a server that speaks its protocol and runs Lua
// scripts, as Valkey does).
//
// Of each application: a hash from contexts to states, a sorted set from contexts to revisions, and
// of each front end its last batch with its results, for a day. A batch is one script, which Redis
// runs as one.
//
// Threading: one at a time. Calls block as those of RedisConnection.
#ifndef FOLIOT_ANSWER_SELECTION_REDIS_STATES_H_
#define FOLIOT_ANSWER_SELECTION_REDIS_STATES_H_

#include <string>
#include <utility>
#include <vector>

#include "answer/selection/shared_states.h"
#include "foundation/base/status.h"
#include "foundation/net/redis_connection.h"

namespace foliot {

class RedisStates final : public SharedStates {
 public:
  // Connects at the first call, and again after each failure.
  explicit RedisStates(RedisAddress address) : connection_(std::move(address)) {}

  // Errors: kUnavailable naming the address.
  Status connect() { return connection_.connect(); }

  Result<std::vector<SharedState>> read(const std::string& application, uint64_t revision) override;
  Result<std::vector<Written>> write(const std::string& application, const std::string& writer,
                                     const StateBatch& batch) override;

 private:
  RedisConnection connection_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_SELECTION_REDIS_STATES_H_
