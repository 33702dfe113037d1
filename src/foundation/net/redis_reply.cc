#include "foundation/net/redis_reply.h"

#include <charconv>

namespace foliot {

std::optional<uint64_t> RedisReply::unsigned_number() const {
  if (kind == Kind::kNumber && number >= 0) return static_cast<uint64_t>(number);
  if (kind != Kind::kText) return std::nullopt;
  uint64_t parsed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return parsed;
}

}  // namespace foliot
