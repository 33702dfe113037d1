#include "node/files/redis_place.h"

#include <cstdlib>

namespace foliot {

Result<RedisAddress> redis_place(const std::string& text) {
  FOLIOT_ASSIGN_OR_RETURN(RedisAddress address, RedisAddress::parse(text));
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing sets the environment
  if (const char* password = std::getenv("FOLIOT_REDIS_PASSWORD")) address.password = password;
  return address;
}

}  // namespace foliot
