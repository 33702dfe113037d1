#include "node/server/state_keeper.h"

#include <fmt/format.h>

#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "answer/selection/redis_states.h"
#include "answer/selection/state_exchange.h"
#include "answer/selection/state_file.h"
#include "node/files/redis_place.h"

namespace foliot {
namespace {

constexpr Duration kStateInterval = Duration::seconds(1);
constexpr int kStateNice = 10;

// Of no other process.
std::string writer_name() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

// The exchange of one server with Redis.
struct RedisExchange {
  RedisExchange(RedisAddress address, SelectedInference& inference, std::string writer)
      : states(std::move(address)),
        exchange([&inference] { return inference.served_applications(); }, states, std::move(writer)) {}
  RedisStates states;
  StateExchange exchange;
};

}  // namespace

Result<StateKeeper::Keep> StateKeeper::open_file(const std::string& file) {
  FOLIOT_ASSIGN_OR_RETURN(StateFile opened, StateFile::open(file));
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<StateFile::Learned> learned, opened.read());
  inference_.restore(learned);
  const auto kept = std::make_shared<StateFile>(std::move(opened));
  return Keep([this, kept] { return kept->write(inference_.take_changes()); });
}

Result<StateKeeper::Keep> StateKeeper::open_redis(const std::string& text) {
  FOLIOT_ASSIGN_OR_RETURN(RedisAddress address, redis_place(text));
  const auto redis = std::make_shared<RedisExchange>(std::move(address), inference_, writer_name());
  if (Status connected = redis->states.connect(); !connected.ok()) {
    return Status::unavailable(connected.message() + "; start Redis there, or give --state another place");
  }
  inference_.share_learning();
  return Keep([redis] { return redis->exchange.exchange(); });
}

Status StateKeeper::start(const std::string& place) {
  const bool is_redis = RedisAddress::is_one(place);
  FOLIOT_ASSIGN_OR_RETURN(keep_, is_redis ? open_redis(place) : open_file(place));
  if (is_redis) FOLIOT_RETURN_IF_ERROR(keep_());
  FOLIOT_ASSIGN_OR_RETURN(thread_, Thread::start({.name = "state", .nice = kStateNice}, [this] { run(); }));
  return Status();
}

void StateKeeper::run() {
  bool last = false, failing = false;
  while (!last) {
    {
      MutexLock lock(mutex_);
      last = stop_.wait_for(mutex_, kStateInterval, [this]() REQUIRES(mutex_) { return stopping_; });
    }
    const Status status = keep_();
    if (!status.ok() && !failing) on_failure_("what applications learned cannot be kept: " + status.message());
    failing = !status.ok();
  }
}

void StateKeeper::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  thread_.join();
}

}  // namespace foliot
