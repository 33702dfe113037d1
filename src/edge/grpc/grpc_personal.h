// Personal models over gRPC (foliot_personal.proto).
#ifndef FOLIOT_EDGE_GRPC_GRPC_PERSONAL_H_
#define FOLIOT_EDGE_GRPC_GRPC_PERSONAL_H_

#include <foliot_personal.grpc.pb.h>

#include "edge/grpc/grpc_calls.h"
#include "edge/grpc/grpc_message.h"

namespace foliot {

using PersonalProtocol = GrpcService<personal::PersonalModels::AsyncService>;

// Accepts their calls from now on. `protocol` outlives the calls.
void serve_personal_models(PersonalProtocol& protocol, GrpcCalls& calls);

}  // namespace foliot

#endif  // FOLIOT_EDGE_GRPC_GRPC_PERSONAL_H_
