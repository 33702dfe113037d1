// FrontendTimeouts: what limits clients' connections in time, besides the idle timeout
// and the request timeout of FrontendOptions.
#ifndef FOLIOT_FRONTEND_FRONTEND_TIMEOUTS_H_
#define FOLIOT_FRONTEND_FRONTEND_TIMEOUTS_H_

#include "base/time.h"

namespace foliot {

struct FrontendTimeouts {
  // gRPC: to the end of the handshake, TLS included.
  Duration handshake = Duration::seconds(10);
  // HTTP: what still comes after an answer that ends a connection is read for so long.
  Duration linger = Duration::seconds(5);
  // HTTP: how often timeouts are checked.
  Duration check_interval = Duration::seconds(1);
  // At the limit of connections: one that has been idle for less is not evicted, since it
  // probably belongs to a client between two requests.
  Duration idle_before_eviction = Duration::seconds(2);
  // Likewise: how often idle connections are determined.
  Duration eviction_check = Duration::milliseconds(100);
  // gRPC: how long stop() lets calls end by themselves.
  Duration stop_grace = Duration::milliseconds(200);
};

inline constexpr FrontendTimeouts kFrontendTimeouts{};

}  // namespace foliot

#endif  // FOLIOT_FRONTEND_FRONTEND_TIMEOUTS_H_
