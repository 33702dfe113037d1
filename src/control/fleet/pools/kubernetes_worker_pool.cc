#include "control/fleet/pools/kubernetes_worker_pool.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "foundation/net/kubernetes_call.h"

namespace foliot {
namespace {

using Json = nlohmann::json;

constexpr size_t kQuotedBytesMax = 300;

// What Kubernetes says in a Status object, or the beginning of what came.
std::string message_of(const std::string& body) {
  const Json json = Json::parse(body, nullptr, false);
  if (json.is_object() && json.contains("message") && json["message"].is_string()) return json["message"];
  return body.substr(0, kQuotedBytesMax);
}

Status refused(const std::string& url, const HttpAnswer& answer) {
  const std::string text = fmt::format("{} answers {}: {}", url, answer.code, message_of(answer.body));
  if (answer.code == 401 || answer.code == 403) {
    return Status::unavailable(text + "; the service account needs `get` and `patch` on statefulsets/scale");
  }
  return answer.code == 404 ? Status::not_found(text) : Status::unavailable(text);
}

}  // namespace

Result<uint32_t> KubernetesWorkerPool::scale(std::string_view kind, const std::string& patch) const {
  const auto found = options_.stateful_sets.find(kind);
  if (found == options_.stateful_sets.end()) {
    return Status::not_found(fmt::format("no StatefulSet has workers of kind '{}'", kind));
  }
  const auto& [name_space, name] = found->second;
  const std::string path = fmt::format("/apis/apps/v1/namespaces/{}/statefulsets/{}/scale", name_space, name);
  const std::string url = options_.server + path;
  const KubernetesCall call = patch.empty() ? KubernetesCall{.path = path}
                                            : KubernetesCall{"PATCH", path, patch, "application/merge-patch+json"};
  FOLIOT_ASSIGN_OR_RETURN(
      const HttpAnswer answer,
      kubernetes_call({options_.server, options_.token_file, options_.ca_file, options_.timeout}, call));
  if (answer.code != 200) return refused(url, answer);
  const Json json = Json::parse(answer.body, nullptr, false);
  const Json::json_pointer replicas("/spec/replicas");
  // What is zero is left out by Kubernetes.
  if (json.is_object() && json.contains("spec") && !json.contains(replicas)) return 0U;
  if (!json.is_object() || !json.contains(replicas) || !json[replicas].is_number_unsigned()) {
    return Status::unavailable(fmt::format("{} answers no Scale: {}", url, answer.body.substr(0, kQuotedBytesMax)));
  }
  return json[replicas].get<uint32_t>();
}

Result<uint32_t> KubernetesWorkerPool::size(std::string_view kind) { return scale(kind, ""); }

Status KubernetesWorkerPool::set_size(std::string_view kind, uint32_t workers) {
  return scale(kind, Json{{"spec", {{"replicas", workers}}}}.dump()).status();
}

std::optional<std::string> KubernetesWorkerPool::next_to_leave(std::string_view kind) {
  const Result<uint32_t> workers = size(kind);
  if (!workers.ok() || *workers == 0) return std::nullopt;
  return fmt::format("{}-{}", options_.stateful_sets.find(kind)->second.name, *workers - 1);
}

}  // namespace foliot
