#include "load/client/inference_client.h"

#include <fmt/format.h>

#include <charconv>

#include "load/client/grpc_client.h"
#include "load/client/http_client.h"

namespace foliot {
namespace {

Result<ServerAddress> parse_url(std::string url) {
  for (const std::string_view scheme : {"http://", "grpc://"}) {
    if (url.starts_with(scheme)) url.erase(0, scheme.size());
  }
  while (url.ends_with('/')) url.pop_back();
  const size_t colon = url.rfind(':');
  const std::string port = colon == std::string::npos ? "" : url.substr(colon + 1);
  uint16_t number = 0;
  const auto parsed = std::from_chars(port.data(), port.data() + port.size(), number);
  if (colon == 0 || parsed.ec != std::errc() || parsed.ptr != port.data() + port.size() || number == 0) {
    return Status::invalid_argument(fmt::format("'{}' is no address of a server: write host:port", url));
  }
  return ServerAddress{.host = url.substr(0, colon), .port = number};
}

}  // namespace

Result<std::vector<std::string>> InferenceClient::ready_models() {
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<ListedModel> models, list_models());
  std::vector<std::string> names;
  for (const ListedModel& model : models) {
    if (model.ready()) names.push_back(model.name);
  }
  return names;
}

Result<std::unique_ptr<InferenceClient>> make_client(const ClientOptions& options, ResponseSink& sink) {
  FOLIOT_ASSIGN_OR_RETURN(const ServerAddress address, parse_url(options.url));
  if (options.connections == 0 || options.threads == 0) {
    return Status::invalid_argument("a client needs at least one connection and one thread");
  }
  switch (options.protocol) {
    case ClientProtocol::kGrpc: return make_grpc_client(address, options, sink);
    case ClientProtocol::kHttp: return make_http_client(address, options, sink);
  }
  FOLIOT_CHECK(false);
}

}  // namespace foliot
