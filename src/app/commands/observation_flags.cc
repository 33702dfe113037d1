#include "app/commands/observation_flags.h"

#include <fmt/format.h>

#include "app/commands/access_flags.h"
#include "app/commands/help_formatter.h"
#include "app/commands/part_flags.h"

namespace foliot {

void add_observation_flags(CLI::App& app, TelemetryOptions& options, const std::string& address_of) {
  const FlagGroup group(app, "Metrics");
  app.add_option("--metrics-port", options.metrics_port, "Prometheus metrics; 0 for any free port")
      ->default_str("none: no metrics");
  app.add_option("--metrics-address", options.metrics_address, "address of the metrics")
      ->default_str(fmt::format("that of {}", address_of));
  add_key_flags(app, options.access);
  add_log_flags(app, options.log);
}

}  // namespace foliot
