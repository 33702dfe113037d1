// Feedback on answers of applications over gRPC (foliot_applications.proto).
#ifndef FOLIOT_EDGE_GRPC_GRPC_FEEDBACK_H_
#define FOLIOT_EDGE_GRPC_GRPC_FEEDBACK_H_

#include <foliot_applications.grpc.pb.h>

#include "edge/grpc/grpc_calls.h"
#include "edge/grpc/grpc_message.h"

namespace foliot {

using ApplicationsProtocol = GrpcService<applications::Applications::AsyncService>;

// Accepts its calls from now on. `protocol` outlives the calls.
void serve_feedback(ApplicationsProtocol& protocol, GrpcCalls& calls);

}  // namespace foliot

#endif  // FOLIOT_EDGE_GRPC_GRPC_FEEDBACK_H_
