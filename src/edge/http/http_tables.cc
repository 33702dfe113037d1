#include "edge/http/http_tables.h"

#include <fmt/format.h>

#include <memory>
#include <string_view>
#include <utility>

#include "edge/http/http_responses.h"
#include "edge/requests/json_text.h"
#include "edge/requests/server_info.h"
#include "foundation/core/catalog.h"
#include "foundation/core/version_table.h"

namespace foliot {
namespace {

constexpr std::string_view kPredict = ":predict";
constexpr std::string_view kJsonType = "application/json";

HttpResponse text_response(std::string text) {
  HttpResponse response = json_response(std::move(text));
  response.content_type = "text/plain";
  return response;
}

// It is one of the versions of a name, which stands in the list itself.
bool names_version(std::string_view name) { return client_name(name).size() < name.size(); }

HttpResponse models_response(const ServedNames& names) {
  std::string json = "{\"models\":[";
  for (const auto& [name, entry] : names.snapshot()) {
    if (names_version(name)) continue;
    if (entry->state != ModelState::kReady || entry->role == EntryRole::kPersonal) continue;
    if (json.back() != '[') json += ',';
    append_json_string(json, name);
  }
  return json_response(json + "]}");
}

HttpResponse ready_response(const std::string& name, const ServedNames& names) {
  const Status found = names.find(name, "").status();
  if (!found.ok() && found.code() != StatusCode::kUnavailable) return error_response(found);
  std::string json = "{\"name\":";
  append_json_string(json, name);
  HttpResponse response = json_response(json + (found.ok() ? ",\"ready\":true}" : ",\"ready\":false}"));
  response.status = found.ok() ? 200 : 503;
  return response;
}

HttpResponse ping_response(const ServedNames& names) {
  HttpResponse response = text_response("\n");
  response.status = names.ready() ? 200 : 503;
  return response;
}

}  // namespace

std::optional<TableCall> table_call_of(const std::vector<std::string>& path) {
  if (path.size() == 1 && path[0] == "invocations") return TableCall{TableForm::kInvocations, ""};
  if (path.size() != 3 || path[0] != "v1" || path[1] != "models" || !path[2].ends_with(kPredict)) return std::nullopt;
  const std::string name = path[2].substr(0, path[2].size() - kPredict.size());
  if (name.empty()) return std::nullopt;
  return TableCall{TableForm::kV1, name};
}

bool is_table_health(const std::vector<std::string>& path) {
  return path.empty() || (path.size() == 1 && (path[0] == "ping" || path[0] == "health"));
}

Result<std::string> model_of(const TableCall& call, const ServedNames& names) {
  if (!call.model.empty()) return call.model;
  Catalog::Entries entries = names.snapshot();
  std::erase_if(entries, [](const auto& entry) { return names_version(entry.first); });
  if (entries.size() == 1) return entries.begin()->first;
  if (entries.empty()) return Status::not_found("no model is served");
  return Status::invalid_argument(
      fmt::format("{} models are served, and this path names none: use /v1/models/NAME:predict or "
                  "/v2/models/NAME/infer, such as /v1/models/{}:predict",
                  entries.size(), entries.begin()->first));
}

Result<JsonRequest> read_table(JsonRequestDecoder& decoder, HttpExchange& exchange, const TableCall& call,
                               const ServedNames& names) {
  FOLIOT_ASSIGN_OR_RETURN(const std::string name, model_of(call, names));
  FOLIOT_ASSIGN_OR_RETURN(std::shared_ptr<const ModelInfo> model, names.find(name, ""));
  return decoder.decode_table(exchange.body(), call.form, std::move(model));
}

std::optional<HttpResponse> refuse_content_type(const HttpExchange& exchange, const TableCall& call) {
  const std::string_view type = exchange.header("Content-Type");
  // KServe's servers do not look at it.
  if (call.form == TableForm::kV1 || type.starts_with(kJsonType)) return std::nullopt;
  HttpResponse response = error_response(Status::invalid_argument(
      fmt::format("content type '{}' is not read; send JSON, with 'Content-Type: {}'", type, kJsonType)));
  response.status = 415;
  return response;
}

bool serve_table_path(HttpExchange& exchange, const std::vector<std::string>& path, const ServedNames& names) {
  const bool is_v1 = path.size() >= 2 && path.size() <= 3 && path[0] == "v1" && path[1] == "models";
  const bool is_version = path.size() == 1 && path[0] == "version";
  if (!is_v1 && !is_version && !is_table_health(path)) return false;
  if (!method_is(exchange, "GET")) return true;
  if (path.empty()) {
    exchange.respond(json_response(R"({"status":"alive"})"));
  } else if (is_version) {
    exchange.respond(text_response(std::string(server_version())));
  } else if (!is_v1) {
    exchange.respond(ping_response(names));
  } else {
    exchange.respond(path.size() == 2 ? models_response(names) : ready_response(path[2], names));
  }
  return true;
}

}  // namespace foliot
