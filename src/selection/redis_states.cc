#include "selection/redis_states.h"

#include <fmt/format.h>
#include <hiredis/hiredis.h>
#include <sys/time.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <ctime>
#include <optional>
#include <utility>

namespace foliot {
namespace {

constexpr std::string_view kScheme = "redis://";
constexpr std::string_view kSocketScheme = "unix:";

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

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// While it lives, a write to a connection that is gone fails, and no signal ends the process.
class BrokenPipesFail {
 public:
  BrokenPipesFail() {
    sigemptyset(&broken_pipe_);
    sigaddset(&broken_pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &broken_pipe_, &before_);
  }
  ~BrokenPipesFail() {
    const timespec at_once{};
    while (sigismember(&before_, SIGPIPE) == 0 && ::sigtimedwait(&broken_pipe_, nullptr, &at_once) < 0 &&
           errno == EINTR) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  BrokenPipesFail(const BrokenPipesFail&) = delete;
  BrokenPipesFail& operator=(const BrokenPipesFail&) = delete;

 private:
  sigset_t broken_pipe_{}, before_{};
};

std::string_view text_of(const redisReply& reply) {
  return reply.type == REDIS_REPLY_STRING ? std::string_view(reply.str, reply.len) : std::string_view();
}

}  // namespace

Result<RedisAddress> RedisAddress::parse(const std::string& text) {
  const auto invalid = [&](std::string_view why) {
    return Status::invalid_argument(
        fmt::format("'{}': {}; it must be redis://HOST[:PORT][/DATABASE] or unix:PATH", text, why));
  };
  RedisAddress address;
  std::string_view rest = text;
  if (rest.starts_with(kSocketScheme)) {
    address.host.clear();
    address.socket = rest.substr(kSocketScheme.size());
    if (address.socket.empty()) return invalid("there is no path");
    return address;
  }
  if (!rest.starts_with(kScheme)) return invalid("is no address of Redis");
  rest.remove_prefix(kScheme.size());
  if (rest.find('@') != rest.npos) return invalid("a password would be seen by all; set FOLIOT_REDIS_PASSWORD");
  if (const size_t slash = rest.find('/'); slash != rest.npos) {
    const std::optional<uint64_t> database = parse_number(rest.substr(slash + 1));
    if (!database || *database > 65535) return invalid("its database must be a number from 0 to 65535");
    address.database = static_cast<uint32_t>(*database);
    rest = rest.substr(0, slash);
  }
  // The colons of an IPv6 address stand in brackets.
  const size_t colon = rest.rfind(':');
  if (colon != rest.npos && rest.find(']', colon) == rest.npos) {
    const std::optional<uint64_t> port = parse_number(rest.substr(colon + 1));
    if (!port || *port == 0 || *port > 65535) return invalid("its port must be a number from 1 to 65535");
    address.port = static_cast<uint16_t>(*port);
    rest = rest.substr(0, colon);
  }
  if (rest.starts_with('[') && rest.ends_with(']')) rest = rest.substr(1, rest.size() - 2);
  if (rest.empty()) return invalid("there is no host");
  address.host = rest;
  return address;
}

std::string RedisAddress::text() const {
  if (host.empty()) return fmt::format("{}{}", kSocketScheme, socket);
  const bool is_ipv6 = host.find(':') != host.npos;
  return fmt::format("{}{}{}{}:{}/{}", kScheme, is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "", port, database);
}

void RedisStates::Close::operator()(redisContext* context) const { redisFree(context); }
void RedisStates::Close::operator()(redisReply* reply) const { freeReplyObject(reply); }

RedisStates::RedisStates(RedisAddress address) : address_(std::move(address)) {}
RedisStates::~RedisStates() = default;

Status RedisStates::failure(std::string_view what) {
  Status failed = Status::unavailable(fmt::format("{}: {}", address_.text(), what));
  context_.reset();  // after that, since `what` may lie in it
  return failed;
}

Status RedisStates::connect() {
  if (context_ != nullptr) return Status();
  const timeval timeout{.tv_sec = kTimeout.nanoseconds() / 1'000'000'000, .tv_usec = 0};
  context_.reset(address_.host.empty() ? redisConnectUnixWithTimeout(address_.socket.c_str(), timeout)
                                       : redisConnectWithTimeout(address_.host.c_str(), address_.port, timeout));
  if (context_ == nullptr) return failure("cannot connect: no memory");
  if (context_->err != 0) return failure(fmt::format("cannot connect: {}", std::string_view(context_->errstr)));
  if (redisSetTimeout(context_.get(), timeout) != REDIS_OK) return failure("cannot set a timeout");
  if (!address_.password.empty()) {
    const std::string words[] = {"AUTH", address_.password};
    FOLIOT_RETURN_IF_ERROR(call(words).status());
  }
  const std::string words[] = {"SELECT", std::to_string(address_.database)};
  return call(words).status();
}

Result<RedisStates::Reply> RedisStates::call(std::span<const std::string> words) {
  FOLIOT_RETURN_IF_ERROR(connect());
  const BrokenPipesFail guard;
  std::vector<const char*> starts;
  std::vector<size_t> sizes;
  for (const std::string& word : words) {
    starts.push_back(word.data());
    sizes.push_back(word.size());
  }
  Reply reply(static_cast<redisReply*>(
      redisCommandArgv(context_.get(), static_cast<int>(words.size()), starts.data(), sizes.data())));
  if (reply == nullptr) return failure(std::string_view(context_->errstr));
  if (reply->type == REDIS_REPLY_ERROR) return failure(std::string(reply->str, reply->len));
  return reply;
}

Result<std::vector<SharedState>> RedisStates::read(const std::string& application, uint64_t revision) {
  const std::string words[] = {"EVAL",
                               kReadScript,
                               "2",
                               key(application, "states"),
                               key(application, "revisions"),
                               std::to_string(revision),
                               std::to_string(kStatesMax)};
  FOLIOT_ASSIGN_OR_RETURN(const Reply reply, call(words));
  if (reply->type != REDIS_REPLY_ARRAY || reply->elements % 3 != 0) return failure("its answer has another form");
  std::vector<SharedState> states;
  for (size_t i = 0; i < reply->elements; i += 3) {
    const std::optional<uint64_t> written = parse_number(text_of(*reply->element[i + 1]));
    if (!written) return failure("a revision is no number");
    states.push_back(
        {std::string(text_of(*reply->element[i])), *written, std::string(text_of(*reply->element[i + 2]))});
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
  FOLIOT_ASSIGN_OR_RETURN(const Reply reply, call(words));
  if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3 * batch.writes.size()) {
    return failure("its answer has another form");
  }
  std::vector<Written> results;
  for (size_t i = 0; i < reply->elements; i += 3) {
    const std::optional<uint64_t> revision = parse_number(text_of(*reply->element[i + 1]));
    if (!revision) return failure("a revision is no number");
    Written& written = results.emplace_back(Written{*revision});
    if (text_of(*reply->element[i]) == "0") written.instead = std::string(text_of(*reply->element[i + 2]));
  }
  return results;
}

}  // namespace foliot
