#include "edge/frontend/frontend.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "edge/grpc/grpc_server.h"
#include "edge/http/http_api.h"
#include "edge/http/http_server.h"
#include "edge/http/metrics_server.h"
#include "edge/requests/gate.h"
#include "edge/requests/protocol_parts.h"
#include "edge/requests/unknown_names.h"

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
          .threads = options.grpc_threads,
          .repository_api = !options.admin_port,
          .tls = options.tls};
}

// An HTTP server and the part of the protocol that it serves, each on one thread.
class HttpPort {
 public:
  HttpPort(const HttpServerOptions& http, HttpApiPart part, uint32_t rows_max, const ProtocolParts& parts,
           const std::function<TimePoint()>& now)
      : mailbox_(std::make_shared<Mailbox>(rows_max,
                                           [this] { http_.post([mailbox = mailbox_.get()] { mailbox->deliver(); }); })),
        api_(part, parts, mailbox_),
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
  FrontendServer(const FrontendOptions& options, const FrontendParts& parts)
      : gate_(options.keys, options.on_denial),
        unknown_names_(options.on_unknown_name, parts.count_unknown_name),
        parts_{parts.inference, parts.names,        parts.statistics, parts.repository, gate_,
               unknown_names_,  options.log_levels, options.traces,   parts.personal,   parts.jobs},
        http_(http_options(options), options.admin_port ? HttpApiPart::kInference : HttpApiPart::kAll,
              options.requests_in_flight_max, parts_, parts.now),
        metrics_server_(
            metrics_options(options), gate_, [this] { return metrics_page(); }, parts.now),
        grpc_(grpc_options(options), parts_, parts.now) {
    if (options.admin_port) {
      admin_ = std::make_unique<HttpPort>(admin_options(options), HttpApiPart::kRepository,
                                          options.requests_in_flight_max, parts_, parts.now);
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
  void show_monitor(MonitorFeed& feed) override { metrics_server_.show(feed); }
  std::vector<TenantStatistics> tenants() const override { return gate_.tenants(); }
  Result<std::shared_ptr<Tenant>> tenant_named(std::string_view name) const override {
    return gate_.tenant_named(name);
  }
  void use_keys(std::shared_ptr<const KeyRing> keys) override { gate_.use_keys(std::move(keys)); }
  Status use_tls(const TlsIdentity& identity) override {
    FOLIOT_RETURN_IF_ERROR(http_.use_tls(identity));
    FOLIOT_RETURN_IF_ERROR(metrics_server_.use_tls(identity));
    if (admin_) FOLIOT_RETURN_IF_ERROR(admin_->use_tls(identity));
    grpc_.use_tls(identity);
    return Status();
  }
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

 private:
  std::string metrics_page() const {
    std::string page;
    for (const MetricsSource* source : metrics_sources_) page += source->text();
    return page;
  }

  std::vector<const MetricsSource*> metrics_sources_;
  Gate gate_;
  UnknownNames unknown_names_;
  const ProtocolParts parts_;
  HttpPort http_;
  MetricsServer metrics_server_;
  GrpcServer grpc_;
  std::unique_ptr<HttpPort> admin_;  // null: the repository API is with all else
};

}  // namespace

std::unique_ptr<Frontend> make_frontend(const FrontendOptions& options, const FrontendParts& parts) {
  return std::make_unique<FrontendServer>(options, parts);
}

}  // namespace foliot
