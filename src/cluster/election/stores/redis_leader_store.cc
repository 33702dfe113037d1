#include "cluster/election/stores/redis_leader_store.h"

#include <fmt/format.h>

namespace foliot {
namespace {

// KEYS: the record. ARGV: its text, or nothing where there is to be none; the new text. Texts of two renewals are never
// equal, so the text is the version.
constexpr const char* kSwap = R"(
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1
)";

}  // namespace

std::string RedisLeaderStore::place() const {
  return fmt::format("key '{}' of {}", kKey, connection_.address().text());
}

Result<StoredLeader> RedisLeaderStore::read() {
  const std::string words[] = {"GET", kKey};
  FOLIOT_ASSIGN_OR_RETURN(const RedisReply reply, connection_.call(words));
  if (reply.is_none()) return StoredLeader{};
  const Result<LeaderRecord> record = LeaderRecord::parse(reply.text);
  if (!record.ok()) return record.status().with_context(place());
  return StoredLeader{*record, reply.text};
}

Result<std::optional<std::string>> RedisLeaderStore::swap(const std::string& version, const LeaderRecord& record) {
  const std::string text = record.text();
  const std::string words[] = {"EVAL", kSwap, "1", kKey, version, text};
  FOLIOT_ASSIGN_OR_RETURN(const RedisReply reply, connection_.call(words));
  if (reply.unsigned_number() == 1) return std::optional(text);
  return std::optional<std::string>();
}

}  // namespace foliot
