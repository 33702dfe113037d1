// find_refusal(): distinguishes the server's refusals from errors, by the reason word in
// the message of a refusal ("model 'x' refused the request: overload").
#ifndef FOLIOT_LOAD_CLIENT_REFUSAL_REASON_H_
#define FOLIOT_LOAD_CLIENT_REFUSAL_REASON_H_

#include <string_view>

#include "foundation/core/request.h"

namespace foliot {

// The first word of `message`, outside of quoted names, that names a Refusal;
// kNone if there is none.
Refusal find_refusal(std::string_view message);

}  // namespace foliot

#endif  // FOLIOT_LOAD_CLIENT_REFUSAL_REASON_H_
