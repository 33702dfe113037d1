#include "edge/http/http_bodies.h"

#include <variant>

namespace foliot {

uint64_t HttpDecodedBody::bytes() const {
  uint64_t bytes = 0;
  if (inference && inference->ok()) {
    for (const std::string& tensor : (*inference)->converted) bytes += tensor.size();
  }
  if (personal && personal->ok() && (*personal)->inputs) {
    for (const ItemTensor& tensor : *(*personal)->inputs) bytes += tensor.bytes.size();
  }
  if (feedback && feedback->ok()) bytes += (*feedback)->label.size() * sizeof(double);
  return bytes;
}

uint64_t text_bytes(HttpExchange& exchange) {
  const uint64_t all = exchange.body().size();
  const auto text = parse_json_bytes(exchange.header(kJsonBytesHeader), all);
  return text.ok() ? text->value_or(all) : 0;
}

Result<JsonRequest> read_inference(JsonRequestDecoder& decoder, HttpExchange& exchange) {
  FOLIOT_ASSIGN_OR_RETURN(const auto text, parse_json_bytes(exchange.header(kJsonBytesHeader), exchange.body().size()));
  return decoder.decode(exchange.body(), text);
}

Result<PersonalRequest> read_personal_call(PersonalMethod method, HttpExchange& exchange) {
  FOLIOT_ASSIGN_OR_RETURN(const auto text, parse_json_bytes(exchange.header(kJsonBytesHeader), exchange.body().size()));
  return parse_personal_request(method, exchange.body(), text);
}

void charge_for_refused_body(const Gate& gate, const HttpExchange& exchange) {
  const std::shared_ptr<Tenant> tenant = gate.tenant_of(exchange.header("Authorization"));
  if (tenant == nullptr || tenant->enter(1, exchange.arrival())) return;
  tenant->leave(1);
}

}  // namespace foliot
