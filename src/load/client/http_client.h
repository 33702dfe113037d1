// The InferenceClient over HTTP/1.1: keep-alive connections, binary tensors. The
// only file of this room that includes Boost's headers is http_client.cc.
#ifndef FOLIOT_LOAD_CLIENT_HTTP_CLIENT_H_
#define FOLIOT_LOAD_CLIENT_HTTP_CLIENT_H_

#include <memory>

#include "load/client/inference_client.h"
#include "load/client/server_address.h"

namespace foliot {

std::unique_ptr<InferenceClient> make_http_client(const ServerAddress& address, const ClientOptions& options,
                                                  ResponseSink& sink);

}  // namespace foliot

#endif  // FOLIOT_LOAD_CLIENT_HTTP_CLIENT_H_
