// Turn: the side that has to act in a call under way.
#ifndef FOLIOT_FRONTEND_TURN_H_
#define FOLIOT_FRONTEND_TURN_H_

namespace foliot {

// The server waits for the client's next message, or the client for an answer.
enum class Turn { kTheirs, kOurs };

}  // namespace foliot

#endif  // FOLIOT_FRONTEND_TURN_H_
