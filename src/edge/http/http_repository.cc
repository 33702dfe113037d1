#include "edge/http/http_repository.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "edge/http/http_responses.h"
#include "edge/requests/request_parameters.h"
#include "foundation/json/bounded_json.h"

namespace foliot {
namespace {

using VersionsJson = nlohmann::ordered_json;

// A call under way. A change is not undone when the client goes away.
class HttpRepositoryCall : public HttpPending {
 public:
  void on_client_gone() override {}
};

// `value` outlives what is returned.
ParameterValue value_of(const nlohmann::json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_unsigned()) return value.get<uint64_t>();
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number_float()) return value.get<double>();
  if (value.is_string()) return std::string_view(value.get_ref<const std::string&>());
  return {};
}

// What the body of a load or an unload asks for beyond it. `request`: of a load.
Status read_parameters(std::string_view body, VersionRequest* request, UnknownNames& unknown_names) {
  if (body.empty()) return Status();
  FOLIOT_ASSIGN_OR_RETURN(const nlohmann::json asked, parse_bounded_json(body));
  const nlohmann::json parameters =
      asked.is_object() ? asked.value("parameters", nlohmann::json::object()) : nlohmann::json();
  if (!parameters.is_object()) {
    return Status::invalid_argument("the body must be a JSON object, its 'parameters' another, or the body be empty");
  }
  UnknownNamesOfRequest unknown;
  for (const auto& parameter : parameters.items()) {
    FOLIOT_RETURN_IF_ERROR(read_repository_parameter(parameter.key(), value_of(parameter.value()), request, unknown));
  }
  unknown_names.note(unknown);
  return Status();
}

std::string_view state_of(const VersionEntry& entry, const VersionList& list) {
  if (entry.name == list.served) return "served";
  if (!entry.reason.empty()) return "kept_aside";
  return entry.name == list.before ? "before" : "idle";
}

std::string versions_json(const std::string& model, const VersionList& list) {
  VersionsJson versions = VersionsJson::array();
  for (const VersionEntry& entry : list.versions) {
    VersionsJson version = {{"version", entry.name}, {"state", state_of(entry, list)}, {"reason", entry.reason}};
    if (const auto& compared = entry.comparison) {
      version["comparison"] = {{"with", compared->with},
                               {"observations", compared->observations},
                               {"users", compared->users},
                               {"loss", compared->loss},
                               {"loss_with", compared->loss_with}};
    }
    versions.push_back(std::move(version));
  }
  const VersionsJson json = {{"model", model},
                             {"served", list.served},
                             {"before", list.before},
                             {"chosen", list.is_chosen},
                             {"versions", std::move(versions)}};
  return json.dump(-1, ' ', false, VersionsJson::error_handler_t::replace);
}

// The exchange stays until it has its response; a mailbox outlives its server, but delivers nothing after it.
void list_versions(HttpExchange& exchange, const std::string& model, ModelRepository& repository,
                   const std::shared_ptr<Mailbox>& mailbox) {
  exchange.keep(std::make_unique<HttpRepositoryCall>());
  repository.list_versions(model, [mailbox, &exchange, model](const Result<VersionList>& list) {
    mailbox->post([&exchange, model, list] {
      exchange.respond(list.ok() ? foliot::json_response(versions_json(model, *list)) : error_response(list.status()));
    });
  });
}

}  // namespace

bool serve_repository_model(HttpExchange& exchange, const std::string& model, const std::string& what,
                            const ProtocolParts& parts, const std::shared_ptr<Mailbox>& mailbox) {
  const bool is_load = what == "load";
  const bool is_list = what == "versions";
  if (!is_load && !is_list && what != "unload") return false;
  if (!method_is(exchange, is_list ? "GET" : "POST")) return true;
  if (is_list) {
    list_versions(exchange, model, parts.repository, mailbox);
    return true;
  }
  VersionRequest request;
  const Status status = read_parameters(exchange.body(), is_load ? &request : nullptr, parts.unknown_names);
  if (!status.ok()) {
    exchange.respond(error_response(status));
    return true;
  }
  exchange.keep(std::make_unique<HttpRepositoryCall>());
  const auto done = [mailbox, &exchange](const Status& changed) {
    mailbox->post([changed, &exchange] { exchange.respond(changed.ok() ? HttpResponse{} : error_response(changed)); });
  };
  is_load ? parts.repository.load_version(model, request, done) : parts.repository.unload(model, done);
  return true;
}

}  // namespace foliot
