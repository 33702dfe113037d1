// RequestOrigin: the part that requests come from, as the part that answers them sees it.
// It keeps their inputs and outputs, takes their completions, and sees which models can be
// asked for (on_model()).
#ifndef FOLIOT_FOUNDATION_CORE_REQUEST_ORIGIN_H_
#define FOLIOT_FOUNDATION_CORE_REQUEST_ORIGIN_H_

#include "foundation/core/observer.h"
#include "foundation/core/payload.h"
#include "foundation/core/ports.h"

namespace foliot {

class RequestOrigin : public CompletionSink, public PayloadStore, public Observer {};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_REQUEST_ORIGIN_H_
