// Client ids: request ids of many clients in one controller: the number that the
// controller gave the client, above the id that the client gave the request. So ids of
// two clients never collide, and each id identifies its client.
#ifndef FOLIOT_CLUSTER_TRANSPORT_CLIENT_IDS_H_
#define FOLIOT_CLUSTER_TRANSPORT_CLIENT_IDS_H_

#include <cstdint>

#include "foundation/core/ids.h"

namespace foliot {

inline constexpr uint32_t kOwnIdBits = 48;
inline constexpr uint64_t kOwnIdMax = (uint64_t{1} << kOwnIdBits) - 1;
inline constexpr uint32_t kClientsMax = uint32_t{1} << (64 - kOwnIdBits);

// Set in the client's ids of runs of pipelines, and in no other of its ids: visits of a run's
// stages have ids of their own (foundation/core/stage_visit.h).
inline constexpr uint64_t kRunIdBit = uint64_t{1} << (kOwnIdBits - 1);
constexpr bool is_run_id(RequestId own) { return (own.value() & kRunIdBit) != 0; }

// REQUIRES: own.value() <= kOwnIdMax.
constexpr RequestId request_of(uint16_t client, RequestId own) {
  return RequestId(uint64_t{client} << kOwnIdBits | own.value());
}
constexpr uint16_t client_of(RequestId request) { return static_cast<uint16_t>(request.value() >> kOwnIdBits); }
constexpr RequestId own_id(RequestId request) { return RequestId(request.value() & kOwnIdMax); }

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_TRANSPORT_CLIENT_IDS_H_
