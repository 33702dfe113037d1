#include "frontend/frontend.h"

#include <fmt/format.h>

#include <utility>

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
  explicit MetricsHandler(const Metrics& metrics) : metrics_(metrics) {}

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
      response.body.push_back(metrics_.text());
    }
    exchange.respond(std::move(response));
  }

 private:
  const Metrics& metrics_;
};

HttpServerOptions http_options(const FrontendOptions& options) {
  return {.thread_name = "foliot-http",
          .address = options.address,
          .port = options.http_port,
          .port_flag = "--http-port",
          .body_bytes_max = options.body_bytes_max,
          .header_bytes_max = options.header_bytes_max,
          .connections_max = options.connections_max,
          .idle_timeout = options.idle_timeout};
}

HttpServerOptions metrics_options(const FrontendOptions& options) {
  return {.thread_name = "foliot-metrics",
          .address = options.address,
          .port = options.metrics_port,
          .port_flag = "--metrics-port",
          .body_bytes_max = kMetricsBodyBytesMax,
          .header_bytes_max = options.header_bytes_max,
          .connections_max = kMetricsConnectionsMax,
          .idle_timeout = options.idle_timeout};
}

GrpcServerOptions grpc_options(const FrontendOptions& options) {
  return {.address = options.address,
          .port = options.grpc_port,
          .body_bytes_max = options.body_bytes_max,
          .requests_in_flight_max = options.requests_in_flight_max};
}

class FrontendServer : public Frontend {
 public:
  FrontendServer(const FrontendOptions& options, const Catalog& catalog, RequestSink& requests,
                 ModelRepository& repository, const std::function<TimePoint()>& now)
      : service_(options.requests_in_flight_max, catalog, requests, statistics_, metrics_, now),
        http_mailbox_(
            std::make_shared<Mailbox>(options.requests_in_flight_max,
                                      [this] { http_.post([mailbox = http_mailbox_.get()] { mailbox->deliver(); }); })),
        api_(service_, repository, http_mailbox_),
        http_(http_options(options), api_, now),
        metrics_handler_(metrics_),
        metrics_http_(metrics_options(options), metrics_handler_, now),
        grpc_(grpc_options(options), service_, repository) {}

  ~FrontendServer() override { stop(); }

  Status start() override {
    Status status = http_.start();
    if (status.ok()) status = grpc_.start();
    if (status.ok()) status = metrics_http_.start();
    if (!status.ok()) stop();
    return status;
  }
  void drain() override { service_.drain(); }
  uint64_t in_flight() const override { return service_.rows_in_flight(); }
  void stop() override {
    http_mailbox_->close();
    http_.stop();
    grpc_.stop();
    metrics_http_.stop();
  }
  uint16_t http_port() const override { return http_.port(); }
  uint16_t grpc_port() const override { return grpc_.port(); }
  uint16_t metrics_port() const override { return metrics_http_.port(); }

  void complete(const Completion& completion) override { service_.complete(completion); }
  std::span<const std::byte> input(PayloadHandle payload, uint32_t index) override {
    return service_.payloads().input(payload, index);
  }
  std::span<std::byte> output(PayloadHandle payload, uint32_t index) override {
    return service_.payloads().output(payload, index);
  }

  void on_model(const ModelInfo& model) override { metrics_.on_model(model); }
  void on_completion(const Completion& completion, TimePoint now) override { metrics_.on_completion(completion, now); }
  void on_outcome(const Action& action, const Outcome& outcome, TimePoint now) override {
    metrics_.on_outcome(action, outcome, now);
  }
  void on_pages(DeviceId device, uint32_t used, uint32_t total) override { metrics_.on_pages(device, used, total); }

 private:
  Statistics statistics_;
  Metrics metrics_{statistics_};
  InferenceService service_;
  std::shared_ptr<Mailbox> http_mailbox_;
  HttpApi api_;
  HttpServer http_;
  MetricsHandler metrics_handler_;
  HttpServer metrics_http_;
  GrpcServer grpc_;
};

}  // namespace

std::unique_ptr<Frontend> make_frontend(const FrontendOptions& options, const Catalog& catalog, RequestSink& requests,
                                        ModelRepository& repository, std::function<TimePoint()> now) {
  return std::make_unique<FrontendServer>(options, catalog, requests, repository, now);
}

}  // namespace foliot
