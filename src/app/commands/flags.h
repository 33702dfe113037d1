// Flags that take quantities, shared by the commands.
#ifndef FOLIOT_APP_COMMANDS_FLAGS_H_
#define FOLIOT_APP_COMMANDS_FLAGS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "foundation/base/time.h"

namespace foliot {

// Each adds --NAME and stores what is given in `to`; a malformed value is an
// error that shows the right form. `shown` is the default as --help shows it.
CLI::Option* add_duration_flag(CLI::App& app, const std::string& name, Duration& to, const std::string& help);
CLI::Option* add_duration_flag(CLI::App& app, const std::string& name, std::optional<Duration>& to,
                               const std::string& help, const std::string& shown);
CLI::Option* add_bytes_flag(CLI::App& app, const std::string& name, uint64_t& to, const std::string& help);
CLI::Option* add_bytes_flag(CLI::App& app, const std::string& name, std::optional<uint64_t>& to,
                            const std::string& help, const std::string& shown);
// Adds --seed, a whole number from 0 on.
CLI::Option* add_seed_flag(CLI::App& app, uint64_t& to, const std::string& help);
CLI::Option* add_seed_flag(CLI::App& app, std::optional<uint64_t>& to, const std::string& help,
                           const std::string& shown);

// Replaces `--config FILE` after the command by the flags that the TOML file sets:
// `http-port = 9000` becomes --http-port 9000. Flags on the command line win.
// Throws CLI::ValidationError naming file and key.
std::vector<std::string> expand_config_file(const CLI::App& app, std::vector<std::string> arguments);

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_FLAGS_H_
