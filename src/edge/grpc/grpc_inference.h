// GrpcInference: the inferences of a gRPC server, ModelInfer and ModelStreamInfer.
#ifndef FOLIOT_EDGE_GRPC_GRPC_INFERENCE_H_
#define FOLIOT_EDGE_GRPC_GRPC_INFERENCE_H_

#include <inference.grpc.pb.h>

#include "edge/grpc/grpc_calls.h"

namespace foliot {

// Accepts them from now on. `protocol` outlives the calls.
void serve_inferences(inference::GRPCInferenceService::AsyncService& protocol, GrpcCalls& calls);

}  // namespace foliot

#endif  // FOLIOT_EDGE_GRPC_GRPC_INFERENCE_H_
