// redis_place(): a server of Redis as a flag names it, with the password of the environment.
#ifndef FOLIOT_NODE_FILES_REDIS_PLACE_H_
#define FOLIOT_NODE_FILES_REDIS_PLACE_H_

#include <string>

#include "foundation/base/status.h"
#include "foundation/net/redis_address.h"

namespace foliot {

// The password is FOLIOT_REDIS_PASSWORD, since flags are seen by all processes. Errors: RedisAddress'.
Result<RedisAddress> redis_place(const std::string& text);

}  // namespace foliot

#endif  // FOLIOT_NODE_FILES_REDIS_PLACE_H_
