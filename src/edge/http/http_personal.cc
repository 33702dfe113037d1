#include "edge/http/http_personal.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <utility>
#include <variant>

#include "edge/http/http_bodies.h"
#include "edge/http/http_responses.h"
#include "edge/requests/json_text.h"

namespace foliot {
namespace {

// Its answer comes all the same when the client goes away.
class HttpPersonalCall : public HttpPending {
 public:
  void on_client_gone() override {}
};

void append_score(std::string& json, float score) {
  std::isfinite(score) ? fmt::format_to(std::back_inserter(json), "{}", score)
                       : fmt::format_to(std::back_inserter(json), "null");
}

void append_list(std::string& json, const PersonalList& list) {
  fmt::format_to(std::back_inserter(json), "{{\"query\":{},\"items\":[", list.query);
  for (const PersonalSlot& slot : list.slots) {
    if (json.back() != '[') json += ',';
    fmt::format_to(std::back_inserter(json), "{{\"item\":{},\"score\":", slot.item);
    append_score(json, slot.score);
    if (slot.is_drawn) {
      fmt::format_to(std::back_inserter(json), ",\"drawn\":true,\"probability\":{}", slot.probability);
    }
    json += '}';
  }
  json += "]}";
}

std::string personal_json(const std::string& model, PersonalMethod method, const PersonalAnswer& answer) {
  std::string json = "{\"model_name\":";
  append_json_string(json, model);
  json += ",\"model_version\":";
  append_json_string(json, answer.version);
  if (method == PersonalMethod::kPredict) {
    json += ",\"predictions\":[";
    for (const float prediction : answer.predictions) {
      if (json.back() != '[') json += ',';
      append_score(json, prediction);
    }
    json += ']';
  }
  if (method == PersonalMethod::kTopK) {
    json += ",\"results\":[";
    for (const PersonalList& list : answer.lists) {
      if (json.back() != '[') json += ',';
      append_list(json, list);
    }
    json += ']';
  }
  return json + "}";
}

}  // namespace

bool is_personal_path(const std::vector<std::string>& path) {
  return path.size() >= 2 && path[0] == "v2" && path[1] == "personal";
}

Scope scope_of_personal_path(const std::vector<std::string>& path) {
  const std::optional<PersonalMethod> method = personal_method_named(path.back());
  return method == PersonalMethod::kObserve || method == PersonalMethod::kForget ? Scope::kObserve : Scope::kInfer;
}

std::optional<PersonalMethod> personal_method_of(const std::vector<std::string>& path) {
  return is_personal_path(path) && path.size() == 4 ? personal_method_named(path.back()) : std::nullopt;
}

bool serve_personal_path(HttpExchange& exchange, const std::vector<std::string>& path, const ProtocolParts& parts,
                         const std::shared_ptr<Mailbox>& mailbox) {
  const std::optional<PersonalMethod> method = personal_method_named(path.back());
  if (path.size() != 4 || !method) return false;
  if (!method_is(exchange, "POST")) return true;
  if (parts.personal == nullptr) {
    exchange.respond(error_response(no_personal_models()));
    return true;
  }
  const std::shared_ptr<HttpDecoded> aside = exchange.take_decoded();
  auto* const decoded = static_cast<HttpDecodedBody*>(aside.get());
  Result<PersonalRequest> request =
      decoded != nullptr ? std::move(decoded->personal).value() : read_personal_call(*method, exchange);
  if (!request.ok()) {
    charge_for_refused_body(parts.gate, exchange);
    exchange.respond(error_response(request.status()));
    return true;
  }
  const std::string& model = path[2];
  PersonalCall call{.model = model,
                    .arrival = exchange.arrival(),
                    .deadline = TimePoint::infinite_future(),
                    .tenant = parts.gate.tenant_of(exchange.header("Authorization")),
                    .inputs = request->inputs};
  if (request->timeout) call.deadline = call.arrival + *request->timeout;
  exchange.keep(std::make_unique<HttpPersonalCall>());
  // The exchange stays until it has its response; a mailbox outlives its server, but delivers
  // nothing after it.
  start_personal(*parts.personal, call, *std::move(request),
                 [mailbox, &exchange, model, method = *method](PersonalResult result) {
                   mailbox->post([&exchange, model, method, result = std::move(result)] {
                     const auto* const answer = std::get_if<PersonalAnswer>(&result);
                     exchange.respond(answer != nullptr ? json_response(personal_json(model, method, *answer))
                                                        : error_response(std::get<CallError>(result)));
                   });
                 });
  return true;
}

}  // namespace foliot
