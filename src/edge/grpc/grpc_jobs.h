// Jobs over gRPC (foliot_jobs.proto).
#ifndef FOLIOT_EDGE_GRPC_GRPC_JOBS_H_
#define FOLIOT_EDGE_GRPC_GRPC_JOBS_H_

#include <foliot_jobs.grpc.pb.h>

#include "edge/grpc/grpc_calls.h"
#include "edge/grpc/grpc_message.h"

namespace foliot {

using JobsProtocol = GrpcService<jobs::Jobs::AsyncService>;

// Accepts their calls from now on. `protocol` outlives the calls.
void serve_jobs(JobsProtocol& protocol, GrpcCalls& calls);

}  // namespace foliot

#endif  // FOLIOT_EDGE_GRPC_GRPC_JOBS_H_
