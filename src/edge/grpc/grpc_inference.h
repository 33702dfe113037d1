// GrpcInference: the inferences of a gRPC server, ModelInfer and ModelStreamInfer.
#ifndef FOLIOT_EDGE_GRPC_GRPC_INFERENCE_H_
#define FOLIOT_EDGE_GRPC_GRPC_INFERENCE_H_

#include <inference.grpc.pb.h>

#include "edge/grpc/grpc_calls.h"
#include "edge/grpc/grpc_message.h"

namespace foliot {

using InferenceProtocol = GrpcService<inference::GRPCInferenceService::AsyncService>;

// Accepts them from now on. `protocol` outlives the calls.
void serve_inferences(InferenceProtocol& protocol, GrpcCalls& calls);

}  // namespace foliot

#endif  // FOLIOT_EDGE_GRPC_GRPC_INFERENCE_H_
