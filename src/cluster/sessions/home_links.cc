#include "cluster/sessions/home_links.h"

#include <fmt/format.h>

#include <algorithm>

#include "cluster/sessions/cluster_timeouts.h"
#include "cluster/sessions/reachable_address.h"
#include "cluster/transport/frame_handlers.h"
#include "cluster/transport/peer_clock.h"

namespace foliot {

// This side asks.
class HomeLinks::CallerSession : public Session {
 public:
  CallerSession(HomeLinks& links, Connection& connection, std::string name)
      : links_(links), connection_(connection), clock_(connection), name_(std::move(name)) {}

  void start(TimePoint now) { clock_.start(now); }
  void keep(TimePoint now) { clock_.keep(now); }
  void send(const HomeCall& call) { connection_.send(call); }

  Status on_frame(const Frame& frame, TimePoint now) override {
    switch (frame.type) {
      case MessageType::kHomeReply: {
        HomeReply reply;
        FOLIOT_RETURN_IF_ERROR(decode(frame, reply));
        links_.shards_->on_reply(reply, now);
        return Status();
      }
      case MessageType::kPong: {
        Pong pong;
        FOLIOT_RETURN_IF_ERROR(decode(frame, pong));
        return clock_.on_pong(pong, now);
      }
      case MessageType::kGoodbye: return on_goodbye(frame);
      default: return unexpected(frame);
    }
  }
  void on_close(const Status& reason, TimePoint now) override {
    const auto connected = links_.connected_.find(name_);
    if (connected == links_.connected_.end() || connected->second != this) return;
    links_.connected_.erase(connected);
    if (!reason.ok()) {
      links_.log_(Severity::kWarning, fmt::format("front end '{}' is lost: {}", name_, reason.message()));
    }
    links_.shards_->on_lost(name_, now);
  }

 private:
  HomeLinks& links_;
  Connection& connection_;
  PeerClock clock_;
  const std::string name_;
};

// The other side asks.
class HomeLinks::HomeSession : public Session {
 public:
  HomeSession(HomeLinks& links, Connection& connection, uint64_t channel)
      : links_(links), connection_(connection), channel_(channel) {}

  void send(const HomeReply& reply) { connection_.send(reply); }

  Status on_frame(const Frame& frame, TimePoint now) override {
    switch (frame.type) {
      case MessageType::kHomeCall: {
        HomeCall call;
        FOLIOT_RETURN_IF_ERROR(decode(frame, call));
        links_.shards_->on_call(channel_, call, now);
        return Status();
      }
      case MessageType::kPing: return on_ping(frame, connection_, now);
      case MessageType::kGoodbye: return on_goodbye(frame);
      default: return unexpected(frame);
    }
  }
  void on_close(const Status& /*reason*/, TimePoint /*now*/) override { links_.channels_.erase(channel_); }

 private:
  HomeLinks& links_;
  Connection& connection_;
  const uint64_t channel_;
};

HomeLinks::~HomeLinks() = default;

void HomeLinks::start(UserShards& shards, LinkControl& loop, std::string address) {
  own_.address = std::move(address);
  shards_ = &shards;
  loop_ = &loop;
}

HomeOffer HomeLinks::offer(const std::string& host) const { return {own_.name, reachable(own_.address, host)}; }

void HomeLinks::set_homes(const Homes& homes, TimePoint now) {
  std::map<std::string, std::string> earlier = std::exchange(names_, {});
  for (const HomeOffer& home : homes.homes) {
    if (home.name == own_.name) continue;
    names_[home.address] = home.name;
    if (const Status status = loop_->keep(home.address); !status.ok()) {
      log_(Severity::kWarning, fmt::format("front end '{}': {}", home.name, status.message()));
    }
  }
  for (const auto& [address, name] : earlier) {
    if (!names_.contains(address)) loop_->release(address);
  }
  shards_->set_homes(homes, now);
}

Result<std::unique_ptr<Session>> HomeLinks::on_open(Connection& connection, TimePoint now) {
  if (connection.ends().dialed.empty()) {
    auto session = std::make_unique<HomeSession>(*this, connection, ++last_channel_);
    channels_.emplace(last_channel_, session.get());
    return std::unique_ptr<Session>(std::move(session));
  }
  const auto name = names_.find(connection.ends().dialed);
  if (name == names_.end()) return Status::invalid_argument("it is a front end that keeps no users");
  auto session = std::make_unique<CallerSession>(*this, connection, name->second);
  connected_[name->second] = session.get();
  session->start(now);
  shards_->on_connected(name->second, now);
  return std::unique_ptr<Session>(std::move(session));
}

void HomeLinks::handle_events(TimePoint now) {
  std::vector<Event> events;
  {
    const MutexLock lock(mutex_);
    events.swap(events_);
  }
  for (const Event& event : events) event(now);
}

TimePoint HomeLinks::on_turn_end(TimePoint now) {
  handle_events(now);
  if (now >= next_look_) {
    next_look_ = now + kClusterTimeouts.check_interval;
    for (const auto& [name, session] : connected_) session->keep(now);
  }
  return std::min(next_look_, shards_->tick(now));
}

void HomeLinks::post(Event event) {
  {
    const MutexLock lock(mutex_);
    events_.push_back(std::move(event));
  }
  loop_->wake();
}

void HomeLinks::send(const std::string& home, const HomeCall& call) { connected_.at(home)->send(call); }

void HomeLinks::reply(uint64_t channel, const HomeReply& reply) {
  const auto session = channels_.find(channel);
  if (session != channels_.end()) session->second->send(reply);
}

}  // namespace foliot
