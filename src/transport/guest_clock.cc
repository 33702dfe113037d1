#include "transport/guest_clock.h"

namespace foliot {
namespace {

constexpr Duration kPingInterval = Duration::seconds(1);

}  // namespace

void GuestClock::ping(TimePoint now) {
  ping_sent_ = now;
  next_ping_ = TimePoint::infinite_future();
  connection_.send(Ping{now});
}

Status GuestClock::on_pong(const Pong& pong, TimePoint now) {
  if (ping_sent_.is_infinite() || pong.ping_sent != ping_sent_) {
    return Status::invalid_argument("a PONG that answers no PING");
  }
  offset_.add(ping_sent_, pong.host_time, now);
  ping_sent_ = TimePoint::infinite_future();
  next_ping_ = now + kPingInterval;
  if (!ready()) ping(now);
  return Status();
}

void GuestClock::keep(TimePoint now) {
  if (next_ping_ <= now) ping(now);
}

}  // namespace foliot
