// RedisConnection: calls of a server of Redis 7 or later (or one that speaks its protocol and runs Lua scripts, as
// Valkey does).
//
// Connects at the first call, and again at the first after a failure. A call that failed may have been made, or be made
// later: a server that stood still reads what was sent to it when it goes on, even if the connection is closed by then.
//
// There is no TLS: the network to the server must be trusted.
//
// Errors name the address: kResourceExhausted where the server has no memory or disk for it, kUnavailable for all else.
// After those of kUnavailable the connection is closed.
//
// Threading: one at a time. Connecting blocks for at most 3 kTimeout, and while the host's address is looked up; each
// call for at most one.
#ifndef FOLIOT_FOUNDATION_NET_REDIS_CONNECTION_H_
#define FOLIOT_FOUNDATION_NET_REDIS_CONNECTION_H_

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/net/redis_address.h"
#include "foundation/net/redis_reply.h"

struct redisContext;

namespace foliot {

class RedisConnection {
 public:
  // Of connecting, and of each call. A server in the same network answers within milliseconds; scripts here are short.
  static constexpr Duration kTimeout = Duration::seconds(1);

  explicit RedisConnection(RedisAddress address);
  ~RedisConnection();

  const RedisAddress& address() const { return address_; }
  // Nothing, if it is connected.
  Status connect();
  // A command and its arguments, each of any bytes.
  Result<RedisReply> call(std::span<const std::string> words);
  // Closes the connection: of an answer that is of no use.
  Status failure(std::string_view what);

 private:
  struct Close {
    void operator()(redisContext* context) const;
  };

  const RedisAddress address_;
  std::unique_ptr<redisContext, Close> context_;  // null: not connected
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_NET_REDIS_CONNECTION_H_
