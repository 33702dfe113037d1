// Flags of the metrics and the log of requests of a controller or a worker.
#ifndef FOLIOT_APP_COMMANDS_OBSERVATION_FLAGS_H_
#define FOLIOT_APP_COMMANDS_OBSERVATION_FLAGS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "node/files/telemetry.h"

namespace foliot {

// `address_of`: the flag whose host the metrics listen on unless they have an address.
void add_observation_flags(CLI::App& app, TelemetryOptions& options, const std::string& address_of);

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_OBSERVATION_FLAGS_H_
