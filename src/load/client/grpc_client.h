// The InferenceClient over gRPC: unary calls on completion queues. The only file
// of this room that includes gRPC's headers is grpc_client.cc.
#ifndef FOLIOT_LOAD_CLIENT_GRPC_CLIENT_H_
#define FOLIOT_LOAD_CLIENT_GRPC_CLIENT_H_

#include <memory>

#include "load/client/inference_client.h"
#include "load/client/server_address.h"

namespace foliot {

std::unique_ptr<InferenceClient> make_grpc_client(const ServerAddress& address, const ClientOptions& options,
                                                  ResponseSink& sink);

}  // namespace foliot

#endif  // FOLIOT_LOAD_CLIENT_GRPC_CLIENT_H_
