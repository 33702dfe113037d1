// Frame handlers: the handling of frames that may come on any link.
#ifndef FOLIOT_CLUSTER_TRANSPORT_FRAME_HANDLERS_H_
#define FOLIOT_CLUSTER_TRANSPORT_FRAME_HANDLERS_H_

#include "cluster/transport/codec.h"
#include "cluster/transport/connection.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

// A frame that this side never gets from such a peer. Always an error:
// kInvalidArgument naming its type.
Status unexpected(const Frame& frame);

// Always an error, which ends the connection: kUnavailable with the peer's reason.
Status on_goodbye(const Frame& frame);

// Answers a client's Ping with this side's time. Errors: kInvalidArgument.
Status on_ping(const Frame& frame, Connection& connection, TimePoint now);

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_TRANSPORT_FRAME_HANDLERS_H_
