#include "answer/selection/redis_states.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace foliot {
namespace {

// KEYS: states, revisions. ARGV: a revision, how many. Returns context, revision and state of each.
constexpr const char* kReadScript = R"(
local found = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[2])
local answer = {}
for i = 1, #found, 2 do
  answer[#answer + 1] = found[i]
  answer[#answer + 1] = found[i + 1]
  answer[#answer + 1] = redis.call('HGET', KEYS[1], found[i]) or ''
end
return answer
)";

// KEYS: states, revisions, the last revision, the writer's last batch. ARGV: the batch's number, the
// most contexts, and context, revision and state of each write. Returns of each: whether it was
// written, the revision that is there now, and the state that is there in its place. Revisions begin
// at the time in microseconds, so that those of a store that lost all are none of before.
constexpr const char* kWriteScript = R"(
if redis.call('HGET', KEYS[4], 'number') == ARGV[1] then
  return cmsgpack.unpack(redis.call('HGET', KEYS[4], 'answer'))
end
if redis.call('EXISTS', KEYS[3]) == 0 then
  local now = redis.call('TIME')
  redis.call('SET', KEYS[3], string.format('%d%06d', now[1], now[2]))
end
local answer = {}
for i = 3, #ARGV, 3 do
  local context, current = ARGV[i], redis.call('ZSCORE', KEYS[2], ARGV[i]) or '0'
  if tonumber(current) == tonumber(ARGV[i + 1]) then
    local revision = string.format('%d', redis.call('INCR', KEYS[3]))
    redis.call('HSET', KEYS[1], context, ARGV[i + 2])
    redis.call('ZADD', KEYS[2], revision, context)
    answer[#answer + 1] = '1'
    answer[#answer + 1] = revision
    answer[#answer + 1] = ''
  else
    answer[#answer + 1] = '0'
    answer[#answer + 1] = current
    answer[#answer + 1] = redis.call('HGET', KEYS[1], context) or ''
  end
end
local own = redis.call('ZSCORE', KEYS[2], '') and 1 or 0
local beyond = redis.call('ZCARD', KEYS[2]) - own - tonumber(ARGV[2])
if beyond > 0 then
  for _, context in ipairs(redis.call('ZRANGE', KEYS[2], 0, beyond)) do
    if context ~= '' and beyond > 0 then
      redis.call('HDEL', KEYS[1], context)
      redis.call('ZREM', KEYS[2], context)
      beyond = beyond - 1
    end
  end
end
redis.call('HSET', KEYS[4], 'number', ARGV[1], 'answer', cmsgpack.pack(answer))
redis.call('EXPIRE', KEYS[4], 86400)
return answer
)";

// All of an application in one slot of a Redis cluster.
std::string key(const std::string& application, std::string_view what) {
  return fmt::format("foliot:{{{}}}:{}", application, what);
}

}  // namespace

Result<std::vector<SharedState>> RedisStates::read(const std::string& application, uint64_t revision) {
  const std::string words[] = {"EVAL",
                               kReadScript,
                               "2",
                               key(application, "states"),
                               key(application, "revisions"),
                               std::to_string(revision),
                               std::to_string(kStatesMax)};
  FOLIOT_ASSIGN_OR_RETURN(const RedisReply reply, connection_.call(words));
  if (!reply.is_list() || reply.list.size() % 3 != 0) return connection_.failure("its answer has another form");
  std::vector<SharedState> states;
  for (size_t i = 0; i < reply.list.size(); i += 3) {
    const std::optional<uint64_t> written = reply.list[i + 1].unsigned_number();
    if (!written) return connection_.failure("a revision is no number");
    states.push_back({reply.list[i].text, *written, reply.list[i + 2].text});
  }
  return states;
}

Result<std::vector<SharedStates::Written>> RedisStates::write(const std::string& application, const std::string& writer,
                                                              const StateBatch& batch) {
  std::vector<std::string> words = {"EVAL",
                                    kWriteScript,
                                    "4",
                                    key(application, "states"),
                                    key(application, "revisions"),
                                    key(application, "last_revision"),
                                    key(application, "batch:" + writer),
                                    std::to_string(batch.number),
                                    std::to_string(batch.contexts_max)};
  for (const SharedState& one : batch.writes) {
    words.push_back(one.context);
    words.push_back(std::to_string(one.revision));
    words.push_back(one.bytes);
  }
  FOLIOT_ASSIGN_OR_RETURN(const RedisReply reply, connection_.call(words));
  if (!reply.is_list() || reply.list.size() != 3 * batch.writes.size()) {
    return connection_.failure("its answer has another form");
  }
  std::vector<Written> results;
  for (size_t i = 0; i < reply.list.size(); i += 3) {
    const std::optional<uint64_t> revision = reply.list[i + 1].unsigned_number();
    if (!revision) return connection_.failure("a revision is no number");
    Written& written = results.emplace_back(Written{*revision});
    if (reply.list[i].text == "0") written.instead = reply.list[i + 2].text;
  }
  return results;
}

}  // namespace foliot
