#include "cluster/transport/frame_handlers.h"

#include <fmt/format.h>

namespace foliot {

Status unexpected(const Frame& frame) {
  return Status::invalid_argument(fmt::format("unexpected {} message", to_string(frame.type)));
}

Status on_goodbye(const Frame& frame) {
  Goodbye goodbye;
  FOLIOT_RETURN_IF_ERROR(decode(frame, goodbye));
  return Status::unavailable(fmt::format("it closed the link: {}", goodbye.reason));
}

Status on_ping(const Frame& frame, Connection& connection, TimePoint now) {
  Ping ping;
  FOLIOT_RETURN_IF_ERROR(decode(frame, ping));
  connection.send(Pong{ping.sent, now});
  return Status();
}

}  // namespace foliot
