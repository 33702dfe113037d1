// MlserverEnvironment: what the environment of an image of MLServer's says, as KServe's runtime for it sets it:
// MLSERVER_HTTP_PORT, MLSERVER_GRPC_PORT, MLSERVER_MODEL_NAME, MLSERVER_MODEL_URI and MLSERVER_MODEL_IMPLEMENTATION.
// An image that is put in the place of that one then serves the same model on the same ports.
//
// Threading: before threads start, since the environment is read.
#ifndef FOLIOT_APP_COMMANDS_MLSERVER_ENVIRONMENT_H_
#define FOLIOT_APP_COMMANDS_MLSERVER_ENVIRONMENT_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "foundation/base/status.h"

namespace foliot {

// The settings that the environment may set. A flag that sets one of them wins.
struct MlserverTargets {
  std::filesystem::path& repository;
  std::string& model_name;
  uint16_t& http_port;
  uint16_t& grpc_port;
  std::string& runtime;  // the module of MODEL_IMPLEMENTATION
};

// Heeds it where `command` was given no argument of its own: "repository", --model-name, --http-port, --grpc-port. A
// line for each variable that is set, which says whether it is heeded. Errors: kInvalidArgument naming variable and
// value.
Result<std::vector<std::string>> heed_mlserver_environment(const CLI::App& command, MlserverTargets targets);

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_MLSERVER_ENVIRONMENT_H_
