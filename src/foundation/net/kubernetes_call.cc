#include "foundation/net/kubernetes_call.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>

namespace foliot {
namespace {

constexpr size_t kAnswerBytesMax = 1 << 20;

// A file that ends with a line end, perhaps.
Result<std::string> read_token(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string token((std::istreambuf_iterator<char>(in)), {});
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  if (token.empty()) {
    return Status::unavailable(
        fmt::format("the token file {} cannot be read, or is empty; outside of a pod name another, or the server of "
                    "`kubectl proxy`",
                    file.string()));
  }
  return token;
}

}  // namespace

Result<HttpAnswer> kubernetes_call(const KubernetesServer& server, const KubernetesCall& call) {
  HttpCall http{.method = call.method,
                .url = server.url + call.path,
                .headers = {"Accept: application/json"},
                .body = call.body,
                .ca_file = server.ca_file.string(),
                .timeout = server.timeout,
                .answer_bytes_max = kAnswerBytesMax};
  if (!server.token_file.empty()) {
    FOLIOT_ASSIGN_OR_RETURN(const std::string token, read_token(server.token_file));
    http.headers.push_back("Authorization: Bearer " + token);
  }
  if (!call.content_type.empty()) http.headers.push_back("Content-Type: " + call.content_type);
  return http_call(http);
}

}  // namespace foliot
