#include "edge/jobs/redis_job_lease.h"

#include "edge/jobs/redis_job_keys.h"

namespace foliot {
namespace {

// KEYS: lease. ARGV: token, name, milliseconds. The lease is "TOKEN NAME". Returns whether it is the token's, and whose
// it is.
constexpr const char* kTakeLease = R"(
local found = redis.call('GET', KEYS[1])
if not found then
  found = ARGV[1] .. ' ' .. ARGV[2]
  redis.call('SET', KEYS[1], found)
end
local space = string.find(found, ' ')
if string.sub(found, 1, space - 1) ~= ARGV[1] then return {'0', string.sub(found, space + 1)} end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {'1', ARGV[2]}
)";

constexpr const char* kRenewLease = R"(
local found = redis.call('GET', KEYS[1])
if not found then return {'0', ''} end
local space = string.find(found, ' ')
if string.sub(found, 1, space - 1) ~= ARGV[1] then return {'0', string.sub(found, space + 1)} end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {'1', ARGV[2]}
)";

constexpr const char* kReleaseLease = R"(
local found = redis.call('GET', KEYS[1])
if found and string.sub(found, 1, string.find(found, ' ') - 1) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return {'0', ''}
)";

}  // namespace

Result<JobLeaseReply> RedisJobLease::call(const char* script, const std::string& token, Duration lease) {
  const std::string words[] = {
      "EVAL", script, "1", redis_job_key("lease"), token, name_, std::to_string(lease.nanoseconds() / 1'000'000)};
  FOLIOT_ASSIGN_OR_RETURN(const RedisReply reply, connection_.call(words));
  if (!reply.is_list() || reply.list.size() != 2) return connection_.failure("its answer has another form");
  return JobLeaseReply{reply.list[0].text == "1", reply.list[1].text};
}

Result<JobLeaseReply> RedisJobLease::take(const std::string& token, Duration lease) {
  return call(kTakeLease, token, lease);
}

Result<JobLeaseReply> RedisJobLease::renew(const std::string& token, Duration lease) {
  return call(kRenewLease, token, lease);
}

Status RedisJobLease::release(const std::string& token) { return call(kReleaseLease, token, Duration()).status(); }

}  // namespace foliot
