// The InferenceClient over HTTP/1.1: keep-alive connections, binary tensors. The
// only file of this room that includes Boost's headers is http_client.cc.
#ifndef FOLIOT_CLIENT_HTTP_CLIENT_H_
#define FOLIOT_CLIENT_HTTP_CLIENT_H_

#include <memory>

#include "client/inference_client.h"
#include "client/server_address.h"

namespace foliot {

std::unique_ptr<InferenceClient> make_http_client(const ServerAddress& address, const ClientOptions& options,
                                                  ResponseSink& sink);

}  // namespace foliot

#endif  // FOLIOT_CLIENT_HTTP_CLIENT_H_
