// Turn: the side that has to act in a call under way.
#ifndef FOLIOT_EDGE_GRPC_TURN_H_
#define FOLIOT_EDGE_GRPC_TURN_H_

namespace foliot {

// The server waits for the client's next message, or the client for an answer.
enum class Turn { kTheirs, kOurs };

}  // namespace foliot

#endif  // FOLIOT_EDGE_GRPC_TURN_H_
