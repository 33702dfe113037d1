#include "cluster/transport/peer_clock.h"

#include <fmt/format.h>

#include <algorithm>

namespace foliot {
namespace {

// They are heartbeats, too.
constexpr Duration kPingInterval = kLinkTimeouts.ping_interval;

}  // namespace

void PeerClock::ping(TimePoint now) {
  ping_sent_ = now;
  next_ping_ = TimePoint::infinite_future();
  connection_.send(Ping{now});
}

Status PeerClock::on_pong(const Pong& pong, TimePoint now) {
  if (ping_sent_.is_infinite() || pong.ping_sent != ping_sent_) {
    return Status::invalid_argument("a PONG without a PING");
  }
  offset_.add(ping_sent_, pong.server_time, now);
  ping_sent_ = TimePoint::infinite_future();
  next_ping_ = std::max(now, pong.ping_sent + kPingInterval);
  if (!ready()) ping(now);
  return Status();
}

void PeerClock::keep(TimePoint now) {
  if (next_ping_ <= now) ping(now);
  if (now < ping_sent_ + silence_max_) return;
  connection_.request_close(Status::unavailable(fmt::format("no PONG for {:.0f} s", silence_max_.to_seconds())));
}

}  // namespace foliot
