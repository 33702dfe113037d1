#include "edge/jobs/redis_job_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "edge/jobs/redis_job_keys.h"
#include "edge/jobs/stored_job.h"

namespace foliot {
namespace {

// KEYS: lease, form, jobs, revisions, revision, writer. ARGV: token, form, number of the write, id, JSON or nothing.
// Returns what became of it, and of 'written' the revision.
constexpr const char* kWriteJob = R"(
local lease = redis.call('GET', KEYS[1]) or ' '
local space = string.find(lease, ' ')
if string.sub(lease, 1, space - 1) ~= ARGV[1] then return {'lost', string.sub(lease, space + 1)} end
local form = redis.call('GET', KEYS[2])
if not form then
  redis.call('SET', KEYS[2], ARGV[2])
elseif form ~= ARGV[2] then
  return {'form', form}
end
local last = redis.call('HMGET', KEYS[6], 'token', 'number')
if last[1] == ARGV[1] and tonumber(last[2]) >= tonumber(ARGV[3]) then return {'late', last[2]} end
redis.call('HSET', KEYS[6], 'token', ARGV[1], 'number', ARGV[3])
if ARGV[5] == '' then
  redis.call('HDEL', KEYS[3], ARGV[4])
  redis.call('ZREM', KEYS[4], ARGV[4])
  return {'written', '0'}
end
local now = redis.call('TIME')
local revision = math.max(tonumber(redis.call('GET', KEYS[5]) or '0') + 1, now[1] * 1000000 + now[2])
revision = string.format('%.0f', revision)
redis.call('SET', KEYS[5], revision)
redis.call('HSET', KEYS[3], ARGV[4], ARGV[5])
redis.call('ZADD', KEYS[4], revision, ARGV[4])
return {'written', revision}
)";

// KEYS: form, jobs. Returns the form and the jobs.
constexpr const char* kReadJobs = R"(
return {redis.call('GET', KEYS[1]) or ARGV[1], redis.call('HGETALL', KEYS[2])}
)";

}  // namespace

Result<std::vector<Job>> RedisJobStore::read() {
  const std::string form = std::to_string(kRedisJobForm);
  const std::string words[] = {"EVAL", kReadJobs, "2", redis_job_key("form"), redis_job_key("jobs"), form};
  FOLIOT_ASSIGN_OR_RETURN(const RedisReply reply, connection_.call(words));
  if (!reply.is_list() || reply.list.size() != 2) return connection_.failure("its answer has another form");
  if (reply.list[0].text != form) return refuse_redis_job_form(connection_.address(), reply.list[0].text);
  std::vector<Job> all;
  const std::vector<RedisReply>& entries = reply.list[1].list;  // id, JSON
  for (size_t i = 0; i + 1 < entries.size(); i += 2) {
    Result<Job> job = stored_job(entries[i].text, entries[i + 1].text);
    if (job.ok()) {
      all.push_back(std::move(job).value());
    } else {
      reports_.on_damaged(
          fmt::format("{}, {}: {}", connection_.address().text(), redis_job_key("jobs"), job.status().message()));
    }
  }
  std::ranges::sort(all, {}, &Job::number);
  return all;
}

Result<uint64_t> RedisJobStore::write(const std::string& id, const std::string& json) {
  const std::string words[] = {"EVAL",
                               kWriteJob,
                               "6",
                               redis_job_key("lease"),
                               redis_job_key("form"),
                               redis_job_key("jobs"),
                               redis_job_key("revisions"),
                               redis_job_key("revision"),
                               redis_job_key("writer"),
                               token_,
                               std::to_string(kRedisJobForm),
                               std::to_string(++writes_),
                               id,
                               json};
  FOLIOT_ASSIGN_OR_RETURN(const RedisReply reply, connection_.call(words));
  if (!reply.is_list() || reply.list.size() != 2) return connection_.failure("its answer has another form");
  const std::string& what = reply.list[0].text;
  const std::optional<uint64_t> revision = reply.list[1].unsigned_number();
  if (what == "written" && revision) return *revision;
  const std::string store = connection_.address().text();
  if (what == "lost") {
    const std::string& holder = reply.list[1].text;
    return Status::unavailable(holder.empty() ? fmt::format("{}: no server keeps the jobs now; this one did", store)
                                              : fmt::format("{}: '{}' keeps the jobs now", store, holder));
  }
  // No fault of the job.
  if (what == "form") {
    return Status::unavailable(refuse_redis_job_form(connection_.address(), reply.list[1].text).message());
  }
  return Status::internal(fmt::format("{}: cannot write job '{}': {} {}", store, id, what, reply.list[1].text));
}

Status RedisJobStore::put(const Job& job) {
  FOLIOT_ASSIGN_OR_RETURN(const uint64_t revision, write(job.id, to_json(job)));
  reports_.on_put(job, revision);
  return Status();
}

Status RedisJobStore::remove(const std::string& id) {
  FOLIOT_RETURN_IF_ERROR(write(id, "").status());
  reports_.on_removed(id);
  return Status();
}

}  // namespace foliot
