// PeerClock: keeps the server's clock known on a client's connection: a few pings at
// the beginning, then one every 50 ms, which are also the client's heartbeat. A server
// that does not answer one for `silence_max` is given up. Its times are LinkTimeouts'.
//
// Threading: belongs to its connection's thread.
#ifndef FOLIOT_CLUSTER_TRANSPORT_PEER_CLOCK_H_
#define FOLIOT_CLUSTER_TRANSPORT_PEER_CLOCK_H_

#include <algorithm>

#include "cluster/transport/clock_offset.h"
#include "cluster/transport/connection.h"
#include "cluster/transport/link_timeouts.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

class PeerClock {
 public:
  static constexpr Duration kSilenceMax = kLinkTimeouts.pong;

  explicit PeerClock(Connection& connection, Duration silence_max = kSilenceMax)
      : connection_(connection), silence_max_(silence_max) {}

  void start(TimePoint now) { ping(now); }
  // Errors: the pong answers no ping of ours.
  Status on_pong(const Pong& pong, TimePoint now);
  // To be called when next_keep() has come, at the latest: pings, or requests that the connection be closed.
  void keep(TimePoint now);
  TimePoint next_keep() const { return std::min(next_ping_, ping_sent_ + silence_max_); }

  // Enough pings have come back for times to be exchanged.
  bool ready() const { return offset_.samples() >= ClockOffset::kWindow; }
  const ClockOffset& offset() const { return offset_; }

 private:
  void ping(TimePoint now);

  Connection& connection_;
  const Duration silence_max_;
  ClockOffset offset_;
  TimePoint next_ping_ = TimePoint::infinite_future();
  TimePoint ping_sent_ = TimePoint::infinite_future();  // infinite: none is under way
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_TRANSPORT_PEER_CLOCK_H_
