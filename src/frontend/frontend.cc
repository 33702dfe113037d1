#include "frontend/frontend.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "frontend/gate.h"
#include "frontend/grpc_server.h"
#include "frontend/http_api.h"
#include "frontend/http_server.h"
#include "frontend/inference_service.h"
#include "frontend/metrics.h"
#include "frontend/metrics_server.h"
#include "frontend/statistics.h"

namespace foliot {
namespace {

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

MetricsServerOptions metrics_options(const FrontendOptions& options) {
  return {.address = options.metrics_address.empty() ? options.address : options.metrics_address,
          .port = options.metrics_port,
          .header_bytes_max = options.header_bytes_max,
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
                  .bytes_max = options.bodies_bytes_max,
                  .tensors = options.tensors,
                  .strict_readiness = options.strict_readiness,
                  .on_unknown_name = options.on_unknown_name},
                 catalog, requests, statistics_, metrics_, now),
        gate_(options.keys, options.on_denial),
        http_(http_options(options), options.admin_port ? HttpApiPart::kInference : HttpApiPart::kAll,
              options.requests_in_flight_max, service_, repository, gate_, now),
        metrics_server_(
            metrics_options(options), gate_, [this] { return metrics_page(); }, now),
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
    if (status.ok()) status = metrics_server_.start();
    if (status.ok() && admin_) status = admin_->start();
    if (!status.ok()) stop();
    return status;
  }
  void add_metrics(const MetricsSource& source) override { metrics_sources_.push_back(&source); }
  void drain() override { service_.drain(); }
  void use_keys(std::shared_ptr<const KeyRing> keys) override { gate_.use_keys(std::move(keys)); }
  Status use_tls(const TlsIdentity& identity) override {
    FOLIOT_RETURN_IF_ERROR(http_.use_tls(identity));
    FOLIOT_RETURN_IF_ERROR(metrics_server_.use_tls(identity));
    if (admin_) FOLIOT_RETURN_IF_ERROR(admin_->use_tls(identity));
    grpc_.use_tls(identity);
    return Status();
  }
  uint64_t in_flight() const override { return service_.rows_in_flight(); }
  bool wait_until_answered(Duration timeout) override { return service_.wait_until_answered(timeout); }
  void stop() override {
    http_.stop();
    grpc_.stop();
    metrics_server_.stop();
    if (admin_) admin_->stop();
  }
  uint16_t http_port() const override { return http_.port(); }
  uint16_t grpc_port() const override { return grpc_.port(); }
  uint16_t metrics_port() const override { return metrics_server_.port(); }
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

 private:
  std::string metrics_page() const {
    std::string page = metrics_.text(gate_.tenants());
    for (const MetricsSource* source : metrics_sources_) page += source->text();
    return page;
  }

  Statistics statistics_;
  Metrics metrics_{statistics_};
  std::vector<const MetricsSource*> metrics_sources_;
  InferenceService service_;
  Gate gate_;
  HttpPort http_;
  MetricsServer metrics_server_;
  GrpcServer grpc_;
  std::unique_ptr<HttpPort> admin_;  // null: the repository API is with all else
};

}  // namespace

std::unique_ptr<Frontend> make_frontend(const FrontendOptions& options, const Catalog& catalog,
                                        LabelledRequestSink& requests, ModelRepository& repository,
                                        const std::function<TimePoint()>& now) {
  return std::make_unique<FrontendServer>(options, catalog, requests, repository, now);
}

}  // namespace foliot
