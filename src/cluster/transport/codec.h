// Codec: messages as frames, and back.
//
// A frame is its length in four bytes (of what follows them), a byte for the type of
// the message, and the message's fields, packed (cluster/transport/message_fields.h).
// docs/decisions/0060 has the reasons for encoding by hand.
#ifndef FOLIOT_CLUSTER_TRANSPORT_CODEC_H_
#define FOLIOT_CLUSTER_TRANSPORT_CODEC_H_

#include <cstdint>
#include <span>

#include "cluster/transport/message.h"
#include "cluster/transport/wire.h"
#include "foundation/base/status.h"
#include "foundation/core/action.h"
#include "foundation/core/request.h"

namespace foliot {

inline constexpr size_t kFrameLengthBytes = 4;

// A received frame; `body` is valid until the call that it was passed to returns.
struct Frame {
  MessageType type = MessageType::kGoodbye;
  std::span<const std::byte> body;
};

// Each appends one frame to `bytes`.
void encode(const Goodbye& message, WireBytes& bytes);
void encode(const Ping& message, WireBytes& bytes);
void encode(const Pong& message, WireBytes& bytes);
void encode(const Registration& message, WireBytes& bytes);
void encode(const Welcome& message, WireBytes& bytes);
void encode(const Action& message, WireBytes& bytes);
void encode(const Visits& message, WireBytes& bytes);
void encode(const Discard& message, WireBytes& bytes);
void encode(const Outcome& message, WireBytes& bytes);
void encode(const Models& message, WireBytes& bytes);
void encode(const Request& message, WireBytes& bytes);
void encode(const Label& message, WireBytes& bytes);
void encode(const Unserved& message, WireBytes& bytes);
void encode(const Cancel& message, WireBytes& bytes);
void encode(const Completion& message, WireBytes& bytes);
void encode(const StatisticsRequest& message, WireBytes& bytes);
void encode(const Statistics& message, WireBytes& bytes);
void encode(const Leave& message, WireBytes& bytes);
void encode(const Admission& message, WireBytes& bytes);
void encode(const Pipelines& message, WireBytes& bytes);
void encode(const Tasks& message, WireBytes& bytes);
void encode(const Workers& message, WireBytes& bytes);
void encode(const Attach& message, WireBytes& bytes);
void encode(const Fetch& message, WireBytes& bytes);
void encode(const Inputs& message, WireBytes& bytes);
void encode(const Outputs& message, WireBytes& bytes);
void encode(const Offer& message, WireBytes& bytes);
void encode(const Withdrawal& message, WireBytes& bytes);
void encode(const Naming& message, WireBytes& bytes);
void encode(const Release& message, WireBytes& bytes);
void encode(const Consumed& message, WireBytes& bytes);
void encode(const HomeOffer& message, WireBytes& bytes);
void encode(const Homes& message, WireBytes& bytes);
void encode(const HomeCall& message, WireBytes& bytes);
void encode(const HomeReply& message, WireBytes& bytes);
void encode(const Leadership& message, WireBytes& bytes);

// Each reads the body of a frame of its type. Errors: kInvalidArgument if it is not
// exactly one such message with every field in its range. Lists are limited by
// what the frame holds, so memory is bounded by the frame's size. Tensors stay in it.
Status decode(const Frame& frame, Goodbye& message);
Status decode(const Frame& frame, Ping& message);
Status decode(const Frame& frame, Pong& message);
Status decode(const Frame& frame, Registration& message);
Status decode(const Frame& frame, Welcome& message);
Status decode(const Frame& frame, Action& message);
Status decode(const Frame& frame, Visits& message);
Status decode(const Frame& frame, Discard& message);
Status decode(const Frame& frame, Outcome& message);
Status decode(const Frame& frame, Models& message);
Status decode(const Frame& frame, Request& message);
Status decode(const Frame& frame, Label& message);
Status decode(const Frame& frame, Unserved& message);
Status decode(const Frame& frame, Cancel& message);
Status decode(const Frame& frame, Completion& message);
Status decode(const Frame& frame, StatisticsRequest& message);
Status decode(const Frame& frame, Statistics& message);
Status decode(const Frame& frame, Leave& message);
Status decode(const Frame& frame, Admission& message);
Status decode(const Frame& frame, Pipelines& message);
Status decode(const Frame& frame, Tasks& message);
Status decode(const Frame& frame, Workers& message);
Status decode(const Frame& frame, Attach& message);
Status decode(const Frame& frame, Fetch& message);
Status decode(const Frame& frame, Inputs& message);
Status decode(const Frame& frame, Outputs& message);
Status decode(const Frame& frame, Offer& message);
Status decode(const Frame& frame, Withdrawal& message);
Status decode(const Frame& frame, Naming& message);
Status decode(const Frame& frame, Release& message);
Status decode(const Frame& frame, Consumed& message);
Status decode(const Frame& frame, HomeOffer& message);
Status decode(const Frame& frame, Homes& message);
Status decode(const Frame& frame, HomeCall& message);
Status decode(const Frame& frame, HomeReply& message);
Status decode(const Frame& frame, Leadership& message);

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_TRANSPORT_CODEC_H_
