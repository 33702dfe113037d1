// HttpInference: one inference over HTTP, from its start until its answer is written, as the protocol that asked has
// it.
//
// Threading: the HTTP server's I/O thread.
#ifndef FOLIOT_EDGE_HTTP_HTTP_INFERENCE_H_
#define FOLIOT_EDGE_HTTP_HTTP_INFERENCE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "answer/inference/inference.h"
#include "edge/http/http_server.h"
#include "edge/requests/json_request.h"

namespace foliot {

class HttpInference : public HttpPending, public AnswerSink {
 public:
  // `table`: what the request was, whose answer are predictions; otherwise it is that of v2. Both references outlive
  // this.
  HttpInference(Inference& inference, HttpExchange& exchange, JsonRequest request, std::optional<TableForm> table)
      : inference_(inference), exchange_(exchange), request_(std::move(request)), table_(table) {}

  // An error, or nothing if the answer comes later.
  std::optional<CallError> start(const std::string& model, const std::string& version, std::shared_ptr<Tenant> tenant,
                                 Mailbox& mailbox);

  void on_client_gone() override;
  void on_answer(CallId call, std::unique_ptr<Answer> answer) override;

 private:
  bool is_long_to_write() const;
  HttpResponse written();
  void respond(HttpResponse response);
  void compress_if_wanted(HttpResponse& response) const;
  bool is_binary(uint32_t output) const;
  HttpResponse response_of(const Answer& answer);
  // {"predictions": [...]}: a value for each row, or an object by names where there are several outputs.
  HttpResponse predictions_of(const Answer& answer);
  Status append_output(const Answer& answer, uint32_t i, std::string& json, std::vector<std::string>& body);

  Inference& inference_;
  HttpExchange& exchange_;
  JsonRequest request_;
  const std::optional<TableForm> table_;
  CallId call_;
  std::unique_ptr<Answer> answer_;    // until it is written
  std::vector<std::string> outputs_;  // its, until they are written; those that are not strings are taken then
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_HTTP_HTTP_INFERENCE_H_
