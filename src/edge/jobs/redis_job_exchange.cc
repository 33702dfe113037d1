#include "edge/jobs/redis_job_exchange.h"

#include <fmt/format.h>

#include "edge/jobs/redis_job_keys.h"
#include "edge/jobs/stored_job.h"

namespace foliot {
namespace {

constexpr size_t kNewsMax = 100;  // of one read: some 3 MB at most

// KEYS: form, jobs, revisions, revision. ARGV: form, the revision before, how many. Returns the form, the last
// revision, how many jobs there are, and id, revision and JSON of each.
constexpr const char* kReadNews = R"(
local answer = {redis.call('GET', KEYS[1]) or ARGV[1], redis.call('GET', KEYS[4]) or '0', redis.call('HLEN', KEYS[2])}
local found = redis.call('ZRANGE', KEYS[3], '(' .. ARGV[2], '+inf', 'BYSCORE', 'LIMIT', 0, ARGV[3], 'WITHSCORES')
for i = 1, #found, 2 do
  answer[#answer + 1] = found[i]
  answer[#answer + 1] = string.format('%.0f', found[i + 1])
  answer[#answer + 1] = redis.call('HGET', KEYS[2], found[i]) or ''
end
return answer
)";

// KEYS: changes. ARGV: the change, the most that wait, milliseconds. Returns whether it was added.
constexpr const char* kPassChange = R"(
if redis.call('LLEN', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('RPUSH', KEYS[1], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
)";

// KEYS: lease, changes. ARGV: token, how many.
constexpr const char* kTakeChanges = R"(
local lease = redis.call('GET', KEYS[1]) or ' '
if string.sub(lease, 1, string.find(lease, ' ') - 1) ~= ARGV[1] then return {} end
return redis.call('LPOP', KEYS[2], ARGV[2]) or {}
)";

constexpr const char* kChangesKept = "60000";  // milliseconds, and so are answers

}  // namespace

Result<RedisJobExchange::News> RedisJobExchange::read(uint64_t since) {
  const std::string form = std::to_string(kRedisJobForm);
  const std::string words[] = {"EVAL",
                               kReadNews,
                               "4",
                               redis_job_key("form"),
                               redis_job_key("jobs"),
                               redis_job_key("revisions"),
                               redis_job_key("revision"),
                               form,
                               std::to_string(since),
                               std::to_string(kNewsMax)};
  FOLIOT_ASSIGN_OR_RETURN(const RedisReply reply, connection_.call(words));
  const std::vector<RedisReply>& list = reply.list;
  if (list.size() < 3 || list.size() % 3 != 0) return connection_.failure("its answer has another form");
  if (list[0].text != form) return refuse_redis_job_form(connection_.address(), list[0].text);
  const std::optional<uint64_t> last = list[1].unsigned_number(), jobs = list[2].unsigned_number();
  if (!last || !jobs) return connection_.failure("its last revision is no number");
  News news{.changed = {}, .read = since, .last = *last, .jobs = *jobs, .is_all = list.size() < 3 + 3 * kNewsMax};
  for (size_t i = 3; i < list.size(); i += 3) {
    const std::optional<uint64_t> revision = list[i + 1].unsigned_number();
    if (!revision) {
      return connection_.failure(fmt::format("{} is damaged: a revision is no number", redis_job_key("revisions")));
    }
    news.read = *revision;
    Result<Job> job = stored_job(list[i].text, list[i + 2].text);
    if (job.ok()) {
      news.changed.push_back({std::move(job).value(), *revision});
    } else {
      news.damaged.push_back(fmt::format("{}: {}", redis_job_key("jobs"), job.status().message()));
    }
  }
  return news;
}

Result<RedisJobExchange::Ids> RedisJobExchange::read_ids() {
  const std::string words[] = {"EVAL", "return {redis.call('GET', KEYS[1]) or '0', redis.call('HKEYS', KEYS[2])}", "2",
                               redis_job_key("revision"), redis_job_key("jobs")};
  FOLIOT_ASSIGN_OR_RETURN(const RedisReply reply, connection_.call(words));
  if (!reply.is_list() || reply.list.size() != 2) return connection_.failure("its answer has another form");
  Ids ids{.ids = {}, .last = reply.list[0].unsigned_number().value_or(0)};
  for (const RedisReply& id : reply.list[1].list) ids.ids.insert(id.text);
  return ids;
}

Result<bool> RedisJobExchange::pass(const std::string& change) {
  const std::string words[] = {
      "EVAL", kPassChange, "1", redis_job_key("changes"), change, std::to_string(kPassedMax), kChangesKept};
  FOLIOT_ASSIGN_OR_RETURN(const RedisReply reply, connection_.call(words));
  return reply.number == 1;
}

Result<bool> RedisJobExchange::withdraw(const std::string& change) {
  const std::string words[] = {"LREM", redis_job_key("changes"), "1", change};
  FOLIOT_ASSIGN_OR_RETURN(const RedisReply reply, connection_.call(words));
  return reply.number == 1;
}

Result<std::vector<std::string>> RedisJobExchange::take(const std::string& token, size_t most) {
  const std::string words[] = {"EVAL", kTakeChanges,        "2", redis_job_key("lease"), redis_job_key("changes"),
                               token,  std::to_string(most)};
  FOLIOT_ASSIGN_OR_RETURN(const RedisReply reply, connection_.call(words));
  std::vector<std::string> changes;
  for (const RedisReply& change : reply.list) changes.push_back(change.text);
  return changes;
}

Status RedisJobExchange::answer(const std::string& id, const std::string& answer) {
  const std::string words[] = {"SET", redis_job_key("answer:" + id), answer, "PX", kChangesKept};
  return connection_.call(words).status();
}

Result<std::vector<std::optional<std::string>>> RedisJobExchange::answers(const std::vector<std::string>& ids) {
  std::vector<std::string> words = {"MGET"};
  for (const std::string& id : ids) words.push_back(redis_job_key("answer:" + id));
  FOLIOT_ASSIGN_OR_RETURN(const RedisReply reply, connection_.call(words));
  if (reply.list.size() != ids.size()) return connection_.failure("its answer has another form");
  std::vector<std::optional<std::string>> found;
  for (const RedisReply& one : reply.list) {
    found.push_back(one.is_none() ? std::nullopt : std::optional(one.text));
  }
  return found;
}

Result<std::string> RedisJobExchange::agree_on_folder(const std::string& value) {
  const std::string key = redis_job_key("folder");
  const std::string set[] = {"SET", key, value, "NX"};
  FOLIOT_RETURN_IF_ERROR(connection_.call(set).status());
  const std::string get[] = {"GET", key};
  FOLIOT_ASSIGN_OR_RETURN(const RedisReply reply, connection_.call(get));
  return reply.text;
}

Result<std::optional<bool>> RedisJobExchange::is_persistent() {
  const std::string words[] = {"INFO", "persistence"};
  FOLIOT_ASSIGN_OR_RETURN(const RedisReply reply, connection_.call(words));
  if (reply.text.find("aof_enabled:1") != std::string::npos) return std::optional(true);
  if (reply.text.find("aof_enabled:0") != std::string::npos) return std::optional(false);
  return std::optional<bool>();
}

}  // namespace foliot
