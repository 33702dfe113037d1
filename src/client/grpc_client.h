// The InferenceClient over gRPC: unary calls on completion queues. The only file
// of this room that includes gRPC's headers is grpc_client.cc.
#ifndef FOLIOT_CLIENT_GRPC_CLIENT_H_
#define FOLIOT_CLIENT_GRPC_CLIENT_H_

#include <memory>

#include "client/inference_client.h"
#include "client/server_address.h"

namespace foliot {

std::unique_ptr<InferenceClient> make_grpc_client(const ServerAddress& address, const ClientOptions& options,
                                                  ResponseSink& sink);

}  // namespace foliot

#endif  // FOLIOT_CLIENT_GRPC_CLIENT_H_
