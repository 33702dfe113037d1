#include "cluster/election/stores/kubernetes_leader_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "foundation/json/bounded_json.h"

namespace foliot {
namespace {

using Json = nlohmann::json;

constexpr size_t kMessageBytesMax = 300;
// The server wants a number above 0; nothing reads it.
constexpr int kLeaseSeconds = 1;

std::string text_at(const Json& json, const char* pointer) {
  const Json::json_pointer at(pointer);
  return json.is_object() && json.contains(at) && json[at].is_string() ? json[at].get<std::string>() : "";
}

}  // namespace

std::string KubernetesLeaderStore::leases() const {
  return fmt::format("/apis/coordination.k8s.io/v1/namespaces/{}/leases", lease_.name_space);
}

std::string KubernetesLeaderStore::place() const {
  return fmt::format("Lease {}/{} of {}", lease_.name_space, lease_.name, server_.url);
}

Status KubernetesLeaderStore::refused(const HttpAnswer& answer) const {
  const auto json = parse_bounded_json(answer.body);
  const std::string message = json.ok() ? text_at(*json, "/message") : "";
  std::string text = fmt::format("{}: the server answers {}: {}", place(), answer.code,
                                 message.empty() ? answer.body.substr(0, kMessageBytesMax) : message);
  if (answer.code == 401 || answer.code == 403) {
    text += "; the service account needs `get`, `update` and `create` on leases";
  }
  return Status::unavailable(std::move(text));
}

Result<StoredLeader> KubernetesLeaderStore::read() {
  FOLIOT_ASSIGN_OR_RETURN(const HttpAnswer answer,
                          kubernetes_call(server_, {.path = fmt::format("{}/{}", leases(), lease_.name)}));
  if (answer.code == 404) return StoredLeader{};
  if (answer.code != 200) return refused(answer);
  const auto json = parse_bounded_json(answer.body);
  if (!json.ok() || text_at(*json, "/metadata/resourceVersion").empty()) return refused(answer);
  StoredLeader stored{.record = {}, .version = text_at(*json, "/metadata/resourceVersion")};
  const std::string text = text_at(*json, fmt::format("/metadata/annotations/{}", kAnnotation).c_str());
  const std::string holder = text_at(*json, "/spec/holderIdentity");
  if (text.empty() && holder.empty()) return stored;  // made, and never held
  if (text.empty()) {
    return Status::invalid_argument(fmt::format(
        "{}: '{}' holds it, which is no controller of Foliot's; name a Lease that nothing else uses", place(), holder));
  }
  const Result<LeaderRecord> record = LeaderRecord::parse(text);
  if (!record.ok()) return record.status().with_context(place());
  stored.record = *record;
  return stored;
}

Result<std::optional<std::string>> KubernetesLeaderStore::swap(const std::string& version, const LeaderRecord& record) {
  const auto transitions = std::min<uint64_t>(record.epoch, std::numeric_limits<int32_t>::max());
  Json lease = {
      {"apiVersion", "coordination.k8s.io/v1"},
      {"kind", "Lease"},
      {"metadata",
       {{"name", lease_.name}, {"namespace", lease_.name_space}, {"annotations", {{kAnnotation, record.text()}}}}},
      {"spec", {{"leaseDurationSeconds", kLeaseSeconds}, {"leaseTransitions", transitions}}}};
  if (!record.address.empty()) lease["spec"]["holderIdentity"] = record.address;
  if (!version.empty()) lease["metadata"]["resourceVersion"] = version;
  KubernetesCall call{"POST", leases(), lease.dump(), "application/json"};
  if (!version.empty()) {
    call.method = "PUT";
    call.path += "/" + lease_.name;
  }
  FOLIOT_ASSIGN_OR_RETURN(const HttpAnswer answer, kubernetes_call(server_, call));
  // It was changed, or made, or removed meanwhile.
  if (answer.code == 409 || answer.code == 404) return std::optional<std::string>();
  const auto json = parse_bounded_json(answer.body);
  if ((answer.code != 200 && answer.code != 201) || !json.ok()) return refused(answer);
  return std::optional(text_at(*json, "/metadata/resourceVersion"));
}

}  // namespace foliot
