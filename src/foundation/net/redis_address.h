// RedisAddress: where a server of Redis is.
#ifndef FOLIOT_FOUNDATION_NET_REDIS_ADDRESS_H_
#define FOLIOT_FOUNDATION_NET_REDIS_ADDRESS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "foundation/base/status.h"

namespace foliot {

struct RedisAddress {
  std::string host = "localhost";  // empty: `socket`
  uint16_t port = 6379;
  std::string socket;  // path of a Unix domain socket
  uint32_t database = 0;
  std::string password;  // empty: none is sent

  // "redis://HOST[:PORT][/DATABASE]" or "unix:PATH". Errors: kInvalidArgument naming it.
  static Result<RedisAddress> parse(const std::string& text);
  // Whether it is meant as an address, right or wrong, and not as the name of a file: any "SCHEME://", or "unix:".
  static bool is_one(std::string_view text);
  std::string text() const;  // without the password
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_NET_REDIS_ADDRESS_H_
