#include "cluster/election/stores/etcd_leader_store.h"

#include <fmt/format.h>

#include "foundation/base/base64.h"
#include "foundation/json/bounded_json.h"
#include "foundation/net/http_call.h"

namespace foliot {
namespace {

using Json = nlohmann::json;

constexpr size_t kQuotedBytesMax = 200;

std::string text_of(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

std::string EtcdLeaderStore::place() const {
  return fmt::format("key '{}' of etcd at {}", options_.key, options_.members[member_]);
}

Result<Json> EtcdLeaderStore::post(const std::string& path, const Json& body) {
  HttpCall call{.method = "POST",
                .url = options_.members[member_] + "/v3/" + path,
                .headers = {"Content-Type: application/json"},
                .body = body.dump(),
                .ca_file = options_.ca_file,
                .timeout = options_.timeout};
  if (!token_.empty()) call.headers.push_back("Authorization: " + token_);
  Result<HttpAnswer> answer = http_call(call);
  if (!answer.ok()) {
    member_ = (member_ + 1) % options_.members.size();
    return answer.status();
  }
  const auto json = parse_bounded_json(answer->body);
  if (answer->code == 200 && json.ok() && json->is_object()) return *json;
  token_.clear();  // which may be the reason, in several ways
  const std::string message = json.ok() && json->is_object() ? text_of(*json, "message") : "";
  Status refused =
      Status::unavailable(fmt::format("{} answers {}: {}", call.url, answer->code,
                                      message.empty() ? answer->body.substr(0, kQuotedBytesMax) : message));
  member_ = (member_ + 1) % options_.members.size();
  return refused;
}

Status EtcdLeaderStore::log_in() {
  const Result<Json> answer = post("auth/authenticate", {{"name", options_.user}, {"password", options_.password}});
  if (!answer.ok()) {
    return answer.status().with_context(
        fmt::format("user '{}' of FOLIOT_ETCD_USER, with FOLIOT_ETCD_PASSWORD", options_.user));
  }
  token_ = text_of(*answer, "token");
  return Status();
}

Result<Json> EtcdLeaderStore::call(const std::string& path, const Json& body) {
  if (!options_.user.empty() && token_.empty()) FOLIOT_RETURN_IF_ERROR(log_in());
  return post(path, body);
}

// The gateway has keys and values in base64.
Result<StoredLeader> EtcdLeaderStore::read() {
  FOLIOT_ASSIGN_OR_RETURN(const Json answer, call("kv/range", {{"key", encode_base64(options_.key)}}));
  const auto found = answer.find("kvs");
  if (found == answer.end() || !found->is_array() || found->empty()) return StoredLeader{};
  const Json& kept = found->front();
  const Result<LeaderRecord> record = LeaderRecord::parse(decode_base64(text_of(kept, "value")).value_or(""));
  if (!record.ok()) return record.status().with_context(place());
  return StoredLeader{*record, text_of(kept, "mod_revision")};
}

// A key that is not there has the revision 0.
Result<std::optional<std::string>> EtcdLeaderStore::swap(const std::string& version, const LeaderRecord& record) {
  const std::string key = encode_base64(options_.key);
  const Json unchanged = {
      {"key", key}, {"target", "MOD"}, {"result", "EQUAL"}, {"mod_revision", version.empty() ? "0" : version}};
  const Json put = {{"request_put", {{"key", key}, {"value", encode_base64(record.text())}}}};
  FOLIOT_ASSIGN_OR_RETURN(const Json answer, call("kv/txn", {{"compare", {unchanged}}, {"success", {put}}}));
  if (!answer.value("succeeded", false)) return std::optional<std::string>();
  const auto header = answer.find("header");
  if (header == answer.end() || !header->is_object())
    return Status::unavailable(place() + ": an answer without header");
  return std::optional(text_of(*header, "revision"));
}

}  // namespace foliot
