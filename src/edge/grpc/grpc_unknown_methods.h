// Calls of methods that no service here has end as UNIMPLEMENTED, as gRPC itself would end them, with words that
// say what to do instead.
#ifndef FOLIOT_EDGE_GRPC_GRPC_UNKNOWN_METHODS_H_
#define FOLIOT_EDGE_GRPC_GRPC_UNKNOWN_METHODS_H_

#include <grpcpp/generic/async_generic_service.h>

#include "edge/grpc/grpc_calls.h"

namespace foliot {

// Begins to answer such calls. `service` is registered with the server, and both outlive the calls.
void refuse_unknown_methods(grpc::AsyncGenericService& service, GrpcCalls& calls);

}  // namespace foliot

#endif  // FOLIOT_EDGE_GRPC_GRPC_UNKNOWN_METHODS_H_
