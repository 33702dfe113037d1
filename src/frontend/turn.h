// Turn: whose turn it is in a call under way.
#ifndef FOLIOT_FRONTEND_TURN_H_
#define FOLIOT_FRONTEND_TURN_H_

namespace foliot {

// We wait for what the client will say next, or it waits for an answer.
enum class Turn { kTheirs, kOurs };

}  // namespace foliot

#endif  // FOLIOT_FRONTEND_TURN_H_
