#include "app/commands/observation.h"

#include <fmt/format.h>

#include <utility>

#include "app/commands/help_formatter.h"
#include "app/commands/part_flags.h"
#include "platform/clock.h"
#include "trace/background_writer.h"

namespace foliot {
namespace {

// "::" of "[::]:8100".
std::string host_of(const std::string& listen) {
  std::string host = listen.substr(0, listen.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host;
}

// Flags of the metrics' port need one.
Status check(const ObservationFlags& flags) {
  const bool access = !flags.access.keys.empty() || !flags.access.tls.certificate.empty() ||
                      !flags.access.tls.private_key.empty() || !flags.access.tls.peer_authority.empty();
  if (flags.metrics() || (!access && flags.metrics_address.empty())) return Status();
  return Status::invalid_argument("--metrics-address, --keys and --tls-... are of the metrics: give --metrics-port");
}

}  // namespace

void add_observation_flags(CLI::App& app, ObservationFlags& flags, const std::string& address_of) {
  const FlagGroup group(app, "Metrics");
  app.add_option("--metrics-port", flags.metrics_port, "Prometheus metrics; 0 for any free port")
      ->default_str("none: no metrics");
  app.add_option("--metrics-address", flags.metrics_address, "address of the metrics")
      ->default_str(fmt::format("that of {}", address_of));
  add_key_flags(app, flags.access);
  add_log_flags(app, flags.log);
}

Observation::Observation(const ObservationFlags& flags, std::shared_ptr<const KeyRing> keys, Logger& log)
    : flags_(flags), gate_(std::move(keys), [&log](const std::string& line) { log.write(Severity::kWarning, line); }) {}

Result<std::unique_ptr<Observation>> Observation::open(const ObservationFlags& flags, const std::string& listen,
                                                       std::function<std::string()> page, Logger& log) {
  FOLIOT_RETURN_IF_ERROR(check(flags));
  FOLIOT_ASSIGN_OR_RETURN(Access access, read_access(flags.access));
  std::unique_ptr<Observation> opened(new Observation(flags, std::move(access.keys), log));
  if (flags.metrics()) {
    opened->server_ = std::make_unique<MetricsServer>(
        MetricsServerOptions{.address = flags.metrics_address.empty() ? host_of(listen) : flags.metrics_address,
                             .port = *flags.metrics_port,
                             .tls = std::move(access.tls)},
        opened->gate_, std::move(page), monotonic_now);
    FOLIOT_RETURN_IF_ERROR(opened->server_->start());
  }
  if (!flags.log.folder.empty()) {
    LogOptions options = flags.log;
    options.origin = monotonic_now();
    FOLIOT_ASSIGN_OR_RETURN(auto writer, BackgroundWriter::open(options));
    opened->recorder_ = std::make_unique<Recorder>(std::move(writer));
  }
  return opened;
}

std::string Observation::description() const {
  return server_ == nullptr ? "" : fmt::format("; metrics :{}/metrics", server_->port());
}

std::vector<WatchedFiles> Observation::watched(Logger& log) {
  if (server_ == nullptr) return {};
  return reloads(flags_.access,
                 {.use_keys = [this](std::shared_ptr<const KeyRing> keys) { gate_.use_keys(std::move(keys)); },
                  .use_tls = [this](const TlsIdentity& identity) { return server_->use_tls(identity); }},
                 log);
}

}  // namespace foliot
