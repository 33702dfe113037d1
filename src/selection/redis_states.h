// RedisStates: shared states in Redis 7 or later (or a server that speaks its protocol and runs Lua
// scripts, as Valkey does).
//
// Of each application: a hash from contexts to states, a sorted set from contexts to revisions, and
// of each front end its last batch with its results, for a day. A batch is one script, which Redis
// runs as one.
//
// Threading: one at a time. Calls block for at most kTimeout.
#ifndef FOLIOT_SELECTION_REDIS_STATES_H_
#define FOLIOT_SELECTION_REDIS_STATES_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "selection/shared_states.h"

struct redisContext;
struct redisReply;

namespace foliot {

// Where a server is.
struct RedisAddress {
  std::string host = "localhost";  // empty: `socket`
  uint16_t port = 6379;
  std::string socket;  // path of a Unix domain socket
  uint32_t database = 0;
  std::string password;  // empty: none is sent

  // "redis://HOST[:PORT][/DATABASE]" or "unix:PATH". Errors: kInvalidArgument naming it.
  static Result<RedisAddress> parse(const std::string& text);
  std::string text() const;  // without the password
};

class RedisStates final : public SharedStates {
 public:
  static constexpr Duration kTimeout = Duration::seconds(1);  // of connecting, and of each call

  // Connects at the first call, and again after each failure.
  explicit RedisStates(RedisAddress address);
  ~RedisStates() override;

  // Errors: kUnavailable naming the address.
  Status connect();

  Result<std::vector<SharedState>> read(const std::string& application, uint64_t revision) override;
  Result<std::vector<Written>> write(const std::string& application, const std::string& writer,
                                     const StateBatch& batch) override;

 private:
  struct Close {
    void operator()(redisContext* context) const;
    void operator()(redisReply* reply) const;
  };
  using Reply = std::unique_ptr<redisReply, Close>;

  // Errors: kUnavailable, and the connection is closed.
  Result<Reply> call(std::span<const std::string> words);
  Status failure(std::string_view what);

  const RedisAddress address_;
  std::unique_ptr<redisContext, Close> context_;  // null: not connected
};

}  // namespace foliot

#endif  // FOLIOT_SELECTION_REDIS_STATES_H_
