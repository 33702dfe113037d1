// LinkTimeouts: what limits a link between processes in time, of sockets and in the
// simulator alike.
#ifndef FOLIOT_CLUSTER_TRANSPORT_LINK_TIMEOUTS_H_
#define FOLIOT_CLUSTER_TRANSPORT_LINK_TIMEOUTS_H_

#include "foundation/base/time.h"

namespace foliot {

struct LinkTimeouts {
  // An attempt to connect; between machines of one network it takes a millisecond.
  Duration connect = Duration::seconds(2);
  // The pause after an attempt that failed, doubled each time; short again after a
  // connection that lasted so long.
  Duration reconnect_min = Duration::milliseconds(50);
  Duration reconnect_max = Duration::milliseconds(500);
  Duration reconnect_reset = Duration::seconds(1);
  // From the connection to its first message, TLS included.
  Duration greeting = Duration::seconds(5);
  // Between two messages of a peer; those that are clients send pings.
  Duration silence = Duration::seconds(30);
  // How often both are checked.
  Duration silence_check = Duration::seconds(1);
  // At the limit of connections: how often those without a greeting are determined, of
  // which a new one evicts one.
  Duration eviction_check = Duration::milliseconds(100);
  // A client's pings, and the answer to one (peer_clock.h).
  Duration ping_interval = Duration::milliseconds(50);
  Duration pong = Duration::seconds(2);
};

inline constexpr LinkTimeouts kLinkTimeouts{};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_TRANSPORT_LINK_TIMEOUTS_H_
