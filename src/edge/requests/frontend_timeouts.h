// FrontendTimeouts: what limits clients' connections in time, besides the idle timeout
// and the request timeout of FrontendOptions.
#ifndef FOLIOT_EDGE_REQUESTS_FRONTEND_TIMEOUTS_H_
#define FOLIOT_EDGE_REQUESTS_FRONTEND_TIMEOUTS_H_

#include <cstdint>

#include "foundation/base/time.h"

namespace foliot {

struct FrontendTimeouts {
  // gRPC: to the end of the handshake, TLS included.
  Duration handshake = Duration::seconds(10);
  // HTTP: what still comes after an answer that ends a connection is read for so long.
  Duration linger = Duration::seconds(5);
  // HTTP: a client has to take so much of its answer, on average over the idle timeout.
  uint64_t answer_bytes_per_second = 1024;
  // HTTP: how often timeouts are checked.
  Duration check_interval = Duration::seconds(1);
  // At the limit of connections: one that has been idle for less is not evicted, since it
  // probably belongs to a client between two requests.
  Duration idle_before_eviction = Duration::seconds(2);
  // Likewise: how often idle connections are determined.
  Duration eviction_check = Duration::milliseconds(100);
  // gRPC: how long stop() lets calls end by themselves.
  Duration stop_grace = Duration::milliseconds(200);
  // gRPC: clients that ping more often, three times in a row without a call's data between, are disconnected.
  Duration ping_interval_least = Duration::seconds(5);
};

inline constexpr FrontendTimeouts kFrontendTimeouts{};

}  // namespace foliot

#endif  // FOLIOT_EDGE_REQUESTS_FRONTEND_TIMEOUTS_H_
