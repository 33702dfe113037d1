// Frame handlers: the handling of frames that may come on any link.
#ifndef FOLIOT_TRANSPORT_FRAME_HANDLERS_H_
#define FOLIOT_TRANSPORT_FRAME_HANDLERS_H_

#include "base/status.h"
#include "base/time.h"
#include "transport/codec.h"
#include "transport/connection.h"

namespace foliot {

// A frame that this side never gets from such a peer. Always an error:
// kInvalidArgument naming its type.
Status unexpected(const Frame& frame);

// Always an error, which ends the connection: kUnavailable with the peer's reason.
Status on_goodbye(const Frame& frame);

// Answers a client's Ping with this side's time. Errors: kInvalidArgument.
Status on_ping(const Frame& frame, Connection& connection, TimePoint now);

}  // namespace foliot

#endif  // FOLIOT_TRANSPORT_FRAME_HANDLERS_H_
