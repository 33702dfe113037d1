#include "frontend/frontend.h"

#include <fmt/format.h>

#include <utility>

#include "frontend/gate.h"
#include "frontend/grpc_server.h"
#include "frontend/http_api.h"
#include "frontend/http_server.h"
#include "frontend/inference_service.h"
#include "frontend/metrics.h"
#include "frontend/statistics.h"

namespace foliot {
namespace {

constexpr uint64_t kMetricsBodyBytesMax = 4 << 10;
constexpr uint32_t kMetricsConnectionsMax = 64;

// GET /metrics, on a thread of its own: a scrape of thousands of series must not
// delay inferences.
class MetricsHandler : public HttpHandler {
 public:
  MetricsHandler(const Metrics& metrics, const Gate& gate) : metrics_(metrics), gate_(gate) {}

  std::optional<HttpResponse> on_header(const HttpExchange& exchange) override {
    const auto error =
        gate_.turn_away(exchange.header("Authorization"), Scope::kMetrics, exchange.peer(), exchange.target());
    if (!error) return std::nullopt;
    HttpResponse response;
    response.status = error->http_status;
    response.content_type = "text/plain; charset=utf-8";
    response.body.push_back(error->message + "\n");
    return response;
  }

  void handle(HttpExchange& exchange) override {
    HttpResponse response;
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    const std::string_view path = exchange.target().substr(0, exchange.target().find('?'));
    if (path != "/metrics") {
      response.status = 404;
      response.body.emplace_back("the metrics are at /metrics\n");
    } else if (exchange.method() != "GET") {
      response.status = 405;
      response.headers.emplace_back("Allow", "GET");
    } else {
      response.body.push_back(metrics_.text(gate_.tenants()));
    }
    exchange.respond(std::move(response));
  }

 private:
  const Metrics& metrics_;
  const Gate& gate_;
};

HttpServerOptions http_options(const FrontendOptions& options) {
  return {.thread_name = "foliot-http",
          .address = options.address,
          .port = options.http_port,
          .port_flag = "--http-port",
          .body_bytes_max = options.body_bytes_max,
          .bodies_bytes_max = options.bodies_bytes_max,
          .header_bytes_max = options.header_bytes_max,
          .connections_max = options.connections_max,
          .idle_timeout = options.idle_timeout,
          .request_timeout = options.request_timeout,
          .tls = options.tls};
}

HttpServerOptions admin_options(const FrontendOptions& options) {
  HttpServerOptions admin = http_options(options);
  admin.thread_name = "foliot-admin";
  admin.address = options.admin_address;
  admin.port = options.admin_port.value_or(0);
  admin.port_flag = "--admin-port";
  return admin;
}

HttpServerOptions metrics_options(const FrontendOptions& options) {
  return {.thread_name = "foliot-metrics",
          .address = options.metrics_address.empty() ? options.address : options.metrics_address,
          .port = options.metrics_port,
          .port_flag = "--metrics-port",
          .body_bytes_max = kMetricsBodyBytesMax,
          .bodies_bytes_max = kMetricsConnectionsMax * kMetricsBodyBytesMax,
          .header_bytes_max = options.header_bytes_max,
          .connections_max = kMetricsConnectionsMax,
          .idle_timeout = options.idle_timeout,
          .request_timeout = options.request_timeout,
          .tls = options.tls};
}

GrpcServerOptions grpc_options(const FrontendOptions& options) {
  return {.address = options.address,
          .port = options.grpc_port,
          .body_bytes_max = options.body_bytes_max,
          .bodies_bytes_max = options.bodies_bytes_max,
          .header_bytes_max = options.header_bytes_max,
          .connections_max = options.connections_max,
          .idle_timeout = options.idle_timeout,
          .request_timeout = options.request_timeout,
          .requests_in_flight_max = options.requests_in_flight_max,
          .repository_api = !options.admin_port,
          .tls = options.tls};
}

// An HTTP server and the part of the protocol that it serves, each on one thread.
class HttpPort {
 public:
  HttpPort(const HttpServerOptions& http, HttpApiPart part, uint32_t rows_max, InferenceService& service,
           ModelRepository& repository, const Gate& gate, const std::function<TimePoint()>& now)
      : mailbox_(std::make_shared<Mailbox>(rows_max,
                                           [this] { http_.post([mailbox = mailbox_.get()] { mailbox->deliver(); }); })),
        api_(part, service, repository, gate, mailbox_),
        http_(http, api_, now) {}

  Status start() { return http_.start(); }
  void stop() {
    mailbox_->close();
    http_.stop();
  }
  uint16_t port() const { return http_.port(); }
  Status use_tls(const TlsIdentity& identity) { return http_.use_tls(identity); }

 private:
  std::shared_ptr<Mailbox> mailbox_;
  HttpApi api_;
  HttpServer http_;
};

class FrontendServer : public Frontend {
 public:
  FrontendServer(const FrontendOptions& options, const Catalog& catalog, LabelledRequestSink& requests,
                 ModelRepository& repository, const std::function<TimePoint()>& now)
      : service_({.rows_max = options.requests_in_flight_max,
                  .tensors = options.tensors,
                  .strict_readiness = options.strict_readiness,
                  .on_unknown_name = options.on_unknown_name},
                 catalog, requests, statistics_, metrics_, now),
        gate_(options.keys, options.on_denial),
        http_(http_options(options), options.admin_port ? HttpApiPart::kInference : HttpApiPart::kAll,
              options.requests_in_flight_max, service_, repository, gate_, now),
        metrics_handler_(metrics_, gate_),
        metrics_http_(metrics_options(options), metrics_handler_, now),
        grpc_(grpc_options(options), service_, repository, gate_) {
    if (options.admin_port) {
      admin_ = std::make_unique<HttpPort>(admin_options(options), HttpApiPart::kRepository,
                                          options.requests_in_flight_max, service_, repository, gate_, now);
    }
  }

  ~FrontendServer() override { stop(); }

  Status start() override {
    Status status = http_.start();
    if (status.ok()) status = grpc_.start();
    if (status.ok()) status = metrics_http_.start();
    if (status.ok() && admin_) status = admin_->start();
    if (!status.ok()) stop();
    return status;
  }
  void drain() override { service_.drain(); }
  void use_keys(std::shared_ptr<const KeyRing> keys) override { gate_.use_keys(std::move(keys)); }
  Status use_tls(const TlsIdentity& identity) override {
    FOLIOT_RETURN_IF_ERROR(http_.use_tls(identity));
    FOLIOT_RETURN_IF_ERROR(metrics_http_.use_tls(identity));
    if (admin_) FOLIOT_RETURN_IF_ERROR(admin_->use_tls(identity));
    grpc_.use_tls(identity);
    return Status();
  }
  uint64_t in_flight() const override { return service_.rows_in_flight(); }
  void stop() override {
    http_.stop();
    grpc_.stop();
    metrics_http_.stop();
    if (admin_) admin_->stop();
  }
  uint16_t http_port() const override { return http_.port(); }
  uint16_t grpc_port() const override { return grpc_.port(); }
  uint16_t metrics_port() const override { return metrics_http_.port(); }
  std::optional<uint16_t> admin_port() const override { return admin_ ? std::optional(admin_->port()) : std::nullopt; }

  void complete(const Completion& completion) override { service_.complete(completion); }
  std::span<const std::byte> input(PayloadHandle payload, uint32_t index) override {
    return service_.payloads().input(payload, index);
  }
  std::span<std::byte> output(PayloadHandle payload, uint32_t index) override {
    return service_.payloads().output(payload, index);
  }

  void on_model(const ModelInfo& model) override { metrics_.on_model(model); }
  void on_outcome(const Action& action, const Outcome& outcome, TimePoint now) override {
    metrics_.on_outcome(action, outcome, now);
  }
  void on_device(const DeviceChange& change, TimePoint now) override { metrics_.on_device(change, now); }
  void on_pages(DeviceId device, uint32_t used, uint32_t total) override { metrics_.on_pages(device, used, total); }

 private:
  Statistics statistics_;
  Metrics metrics_{statistics_};
  InferenceService service_;
  Gate gate_;
  HttpPort http_;
  MetricsHandler metrics_handler_;
  HttpServer metrics_http_;
  GrpcServer grpc_;
  std::unique_ptr<HttpPort> admin_;  // null: the repository API is with all else
};

}  // namespace

std::unique_ptr<Frontend> make_frontend(const FrontendOptions& options, const Catalog& catalog, LabelledRequestSink& requests,
                                        ModelRepository& repository, const std::function<TimePoint()>& now) {
  return std::make_unique<FrontendServer>(options, catalog, requests, repository, now);
}

}  // namespace foliot
