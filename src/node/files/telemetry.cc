#include "node/files/telemetry.h"

#include <fmt/format.h>

#include <utility>

#include "foundation/platform/clock.h"
#include "observe/request_log/background_writer.h"

namespace foliot {
namespace {

// "::" of "[::]:8100".
std::string host_of(const std::string& listen) {
  std::string host = listen.substr(0, listen.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host;
}

// Flags of the metrics' port need one.
Status check(const TelemetryOptions& options) {
  const bool access = !options.access.keys.empty() || !options.access.tls.certificate.empty() ||
                      !options.access.tls.private_key.empty() || !options.access.tls.peer_authority.empty();
  if (options.metrics() || (!access && options.metrics_address.empty())) return Status();
  return Status::invalid_argument("--metrics-address, --keys and --tls-... are of the metrics: give --metrics-port");
}

}  // namespace

Telemetry::Telemetry(const TelemetryOptions& options, std::shared_ptr<const KeyRing> keys, Logger& log)
    : options_(options),
      gate_(std::move(keys), [&log](const std::string& line) { log.write(Severity::kWarning, line); }) {}

Result<std::unique_ptr<Telemetry>> Telemetry::open(const TelemetryOptions& options, const std::string& listen,
                                                   std::function<std::string()> page, Logger& log, MonitorFeed* feed) {
  FOLIOT_RETURN_IF_ERROR(check(options));
  FOLIOT_ASSIGN_OR_RETURN(Access access, read_access(options.access));
  std::unique_ptr<Telemetry> opened(new Telemetry(options, std::move(access.keys), log));
  if (options.tracing.on()) {
    FOLIOT_ASSIGN_OR_RETURN(opened->tracing_, Tracing::start(options.tracing));
    page = [page = std::move(page), &traced = *opened->tracing_] { return page() + traced.text(); };
  }
  if (options.metrics()) {
    opened->server_ = std::make_unique<MetricsServer>(
        MetricsServerOptions{.address = options.metrics_address.empty() ? host_of(listen) : options.metrics_address,
                             .port = *options.metrics_port,
                             .tls = std::move(access.tls)},
        opened->gate_, std::move(page), monotonic_now);
    if (feed != nullptr) opened->server_->show(*feed);
    FOLIOT_RETURN_IF_ERROR(opened->server_->start());
  }
  if (!options.log.folder.empty()) {
    LogOptions log_options = options.log;
    log_options.origin = monotonic_now();
    FOLIOT_ASSIGN_OR_RETURN(auto writer, BackgroundWriter::open(log_options));
    opened->recorder_ = std::make_unique<Recorder>(std::move(writer));
  }
  return opened;
}

std::string Telemetry::description() const {
  return server_ == nullptr ? "" : fmt::format("; metrics :{}/metrics", server_->port());
}

std::vector<WatchedFiles> Telemetry::watched(Logger& log) {
  if (server_ == nullptr) return {};
  return reloads(options_.access,
                 {.use_keys = [this](std::shared_ptr<const KeyRing> keys) { gate_.use_keys(std::move(keys)); },
                  .use_tls = [this](const TlsIdentity& identity) { return server_->use_tls(identity); }},
                 log);
}

}  // namespace foliot
