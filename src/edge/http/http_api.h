// HttpApi: the Open Inference Protocol v2 over HTTP: its paths and its JSON,
// tables (http_tables.h), the repository (http_repository.h), /v2/applications/NAME/feedback, personal models
// (http_personal.h) and jobs (http_jobs.h).
// Scopes of keys (foundation/access/scope.h): health needs no key, the repository `admin`, feedback `feedback`,
// observations `observe`, jobs `jobs`, all else `infer`.
#ifndef FOLIOT_EDGE_HTTP_HTTP_API_H_
#define FOLIOT_EDGE_HTTP_HTTP_API_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "answer/inference/mailbox.h"
#include "edge/http/http_server.h"
#include "edge/http/http_tables.h"
#include "edge/requests/gate.h"
#include "edge/requests/json_request.h"
#include "edge/requests/protocol_parts.h"
#include "foundation/core/catalog.h"

namespace foliot {

// The part of the protocol that is served: the repository API, with jobs, may have a port of its
// own.
enum class HttpApiPart { kAll, kInference, kRepository };

// Threading: the HTTP server's I/O thread.
class HttpApi : public HttpHandler {
 public:
  // All references outlive this. `mailbox` is the HTTP server's thread's; shared
  // with loads and unloads that may end after the server.
  HttpApi(HttpApiPart part, const ProtocolParts& parts, std::shared_ptr<Mailbox> mailbox);

  void handle(HttpExchange& exchange) override;
  // Refuses calls without a key for them, and large bodies for models that cannot
  // answer, before the body is read.
  std::optional<HttpResponse> on_header(const HttpExchange& exchange) override;
  uint64_t body_bytes_max(const HttpExchange& exchange) const override;
  uint64_t parsed_bytes(HttpExchange& exchange) const override;
  std::unique_ptr<HttpDecoded> decode(HttpExchange& exchange) const override;
  std::string source(const HttpExchange& exchange) const override;

 private:
  // The path's parts between slashes, decoded.
  using Path = std::vector<std::string>;

  bool route_server(HttpExchange& exchange, const Path& path);
  bool route_tables(HttpExchange& exchange, const Path& path);
  bool route_models(HttpExchange& exchange, const Path& path);
  bool route_repository(HttpExchange& exchange, const Path& path);
  bool route_shared_memory(HttpExchange& exchange, const Path& path);
  bool route_settings(HttpExchange& exchange, const Path& path);
  bool route_applications(HttpExchange& exchange, const Path& path);

  std::optional<HttpResponse> refuse_large_body(const HttpExchange& exchange, const Path& path) const;
  // `table`: what names the model in place of `model` and `version`.
  void infer(HttpExchange& exchange, const std::string& model, const std::string& version,
             const std::optional<TableCall>& table);
  HttpResponse take_feedback(HttpExchange& exchange, const std::string& application);
  HttpResponse log_settings_response(HttpExchange& exchange) const;
  HttpResponse trace_settings_response(HttpExchange& exchange) const;
  HttpResponse index_response(std::string_view body) const;
  std::string index_json(bool ready_only) const;

  const HttpApiPart part_;
  const ProtocolParts parts_;
  const std::shared_ptr<Mailbox> mailbox_;
  JsonRequestDecoder decoder_;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_HTTP_HTTP_API_H_
