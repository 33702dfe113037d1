// RedisReply: what a command of Redis returned, as a value.
#ifndef FOLIOT_FOUNDATION_NET_REDIS_REPLY_H_
#define FOLIOT_FOUNDATION_NET_REDIS_REPLY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace foliot {

struct RedisReply {
  enum class Kind : uint8_t { kNone, kText, kNumber, kList };
  Kind kind = Kind::kNone;
  std::string text;  // of kText, of any bytes
  int64_t number = 0;
  std::vector<RedisReply> list;

  bool is_none() const { return kind == Kind::kNone; }
  bool is_list() const { return kind == Kind::kList; }
  // A kNumber, or a kText that is one, as scripts return what is beyond 2^53. nullopt: it is neither, or is negative.
  std::optional<uint64_t> unsigned_number() const;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_NET_REDIS_REPLY_H_
