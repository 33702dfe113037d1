// Bodies that take long to parse, read as their paths have them: on the decoding thread if they are long, and otherwise
// when they are handled.
#ifndef FOLIOT_EDGE_HTTP_HTTP_BODIES_H_
#define FOLIOT_EDGE_HTTP_HTTP_BODIES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "edge/http/http_server.h"
#include "edge/requests/feedback.h"
#include "edge/requests/gate.h"
#include "edge/requests/json_request.h"
#include "edge/requests/personal_request.h"

namespace foliot {

// Exactly one of the three.
class HttpDecodedBody : public HttpDecoded {
 public:
  uint64_t bytes() const override;

  JsonRequestDecoder decoder;  // shown by `inference`
  std::optional<Result<JsonRequest>> inference;
  std::optional<Result<PersonalRequest>> personal;
  std::optional<Result<Feedback>> feedback;
};

// What of the body is text.
uint64_t text_bytes(HttpExchange& exchange);
Result<JsonRequest> read_inference(JsonRequestDecoder& decoder, HttpExchange& exchange);
Result<PersonalRequest> read_personal_call(PersonalMethod method, HttpExchange& exchange);
// To read it took time, which counts as a request of the key's.
void charge_for_refused_body(const Gate& gate, const HttpExchange& exchange);

}  // namespace foliot

#endif  // FOLIOT_EDGE_HTTP_HTTP_BODIES_H_
