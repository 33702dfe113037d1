#include "foundation/net/redis_connection.h"

#include <fmt/format.h>
#include <hiredis/hiredis.h>
#include <sys/time.h>

#include <cerrno>
#include <csignal>
#include <ctime>
#include <utility>
#include <vector>

namespace foliot {
namespace {

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

struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};

RedisReply copy_of(const redisReply& reply) {
  RedisReply copy;
  switch (reply.type) {
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
    case REDIS_REPLY_ERROR:
      copy.kind = RedisReply::Kind::kText;
      copy.text.assign(reply.str, reply.len);
      break;
    case REDIS_REPLY_INTEGER:
      copy.kind = RedisReply::Kind::kNumber;
      copy.number = reply.integer;
      break;
    case REDIS_REPLY_ARRAY:
      copy.kind = RedisReply::Kind::kList;
      copy.list.reserve(reply.elements);
      for (size_t i = 0; i < reply.elements; ++i) copy.list.push_back(copy_of(*reply.element[i]));
      break;
    default: break;
  }
  return copy;
}

// The server refuses writes for want of memory, or of a disk that takes them.
bool is_no_room(std::string_view error) { return error.starts_with("OOM ") || error.starts_with("MISCONF "); }

// What to do about an error; empty where the error says it.
std::string_view remedy_of(std::string_view error) {
  const bool wants_another = error.starts_with("NOAUTH ") || error.starts_with("WRONGPASS ");
  return wants_another ? " Give Redis' password in the environment variable FOLIOT_REDIS_PASSWORD." : "";
}

}  // namespace

void RedisConnection::Close::operator()(redisContext* context) const { redisFree(context); }

RedisConnection::RedisConnection(RedisAddress address) : address_(std::move(address)) {}
RedisConnection::~RedisConnection() = default;

Status RedisConnection::failure(std::string_view what) {
  Status failed = Status::unavailable(fmt::format("{}: {}", address_.text(), what));
  context_.reset();  // after that, since `what` may lie in it
  return failed;
}

Status RedisConnection::connect() {
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

Result<RedisReply> RedisConnection::call(std::span<const std::string> words) {
  FOLIOT_RETURN_IF_ERROR(connect());
  const BrokenPipesFail guard;
  std::vector<const char*> starts;
  std::vector<size_t> sizes;
  for (const std::string& word : words) {
    starts.push_back(word.data());
    sizes.push_back(word.size());
  }
  const std::unique_ptr<redisReply, FreeReply> reply(static_cast<redisReply*>(
      redisCommandArgv(context_.get(), static_cast<int>(words.size()), starts.data(), sizes.data())));
  if (reply == nullptr) return failure(std::string_view(context_->errstr));
  if (reply->type != REDIS_REPLY_ERROR) return copy_of(*reply);
  const std::string error(reply->str, reply->len);
  if (is_no_room(error)) return Status::resource_exhausted(fmt::format("{}: {}", address_.text(), error));
  return failure(fmt::format("{}{}", error, remedy_of(error)));
}

}  // namespace foliot
