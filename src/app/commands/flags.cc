#include "app/commands/flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>
#include <utility>

#include "foundation/base/status.h"
#include "foundation/base/units.h"
#include "foundation/config/toml_file.h"

namespace foliot {
namespace {

template <typename Parse, typename T>
CLI::Option* add_flag(CLI::App& app, const std::string& name, T& to, const std::string& help, const std::string& type,
                      const std::string& shown, Parse parse) {
  return app
      .add_option_function<std::string>(
          "--" + name,
          [&to, name, parse](const std::string& text) {
            const auto value = parse(text);
            if (!value.ok()) throw CLI::ValidationError("--" + name, value.status().message());
            to = *value;
          },
          help)
      ->type_name(type)
      ->default_str(shown);
}

// As it is typed: "50ms", "60s", "10m".
std::string typed_duration(Duration duration) {
  struct Unit {
    std::string_view name;
    int64_t nanoseconds;
  };
  static constexpr Unit kUnits[] = {{"h", 3'600'000'000'000}, {"m", 60'000'000'000}, {"s", 1'000'000'000},
                                    {"ms", 1'000'000},        {"us", 1'000},         {"ns", 1}};
  const int64_t nanoseconds = duration.nanoseconds();
  for (const Unit& unit : kUnits) {
    const int64_t count = nanoseconds / unit.nanoseconds;
    if (nanoseconds % unit.nanoseconds == 0 && count > 1) return fmt::format("{}{}", count, unit.name);
  }
  return nanoseconds == 0 ? "0s" : format_duration(duration);
}

// As it is typed: "64MiB"; three digits of what is no small whole number of a unit.
std::string typed_bytes(uint64_t bytes) {
  constexpr uint64_t kCountMax = 9999;
  static constexpr std::pair<std::string_view, int> kUnits[] = {{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}};
  for (const auto& [name, shift] : kUnits) {
    const uint64_t count = bytes >> shift;
    if (count > 0 && count <= kCountMax && count << shift == bytes) return fmt::format("{}{}", count, name);
  }
  return format_bytes(bytes);
}

Result<uint64_t> parse_seed(const std::string& text) {
  uint64_t seed = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, seed);
  if (error == std::errc() && stop == end) return seed;
  return Status::invalid_argument(
      fmt::format("'{}' is no seed: give a whole number from 0 to {}", text, std::numeric_limits<uint64_t>::max()));
}

std::string flag_value(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* real = node.as_floating_point()) return fmt::format("{}", real->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  return {};
}

const CLI::App* find_command(const CLI::App& app, const std::vector<std::string>& arguments) {
  if (arguments.empty()) return nullptr;
  for (const CLI::App* command :
       app.get_subcommands([&](const CLI::App* c) { return c->get_name() == arguments.front(); })) {
    return command;
  }
  return nullptr;
}

}  // namespace

CLI::Option* add_duration_flag(CLI::App& app, const std::string& name, Duration& to, const std::string& help) {
  return add_flag(app, name, to, help, "DURATION", typed_duration(to), parse_duration);
}

CLI::Option* add_duration_flag(CLI::App& app, const std::string& name, std::optional<Duration>& to,
                               const std::string& help, const std::string& shown) {
  return add_flag(app, name, to, help, "DURATION", shown, parse_duration);
}

CLI::Option* add_bytes_flag(CLI::App& app, const std::string& name, uint64_t& to, const std::string& help) {
  return add_flag(app, name, to, help, "SIZE", typed_bytes(to), parse_bytes);
}

CLI::Option* add_bytes_flag(CLI::App& app, const std::string& name, std::optional<uint64_t>& to,
                            const std::string& help, const std::string& shown) {
  return add_flag(app, name, to, help, "SIZE", shown, parse_bytes);
}

CLI::Option* add_seed_flag(CLI::App& app, uint64_t& to, const std::string& help) {
  return add_flag(app, "seed", to, help, "SEED", fmt::format("{}", to), parse_seed);
}

CLI::Option* add_seed_flag(CLI::App& app, std::optional<uint64_t>& to, const std::string& help,
                           const std::string& shown) {
  return add_flag(app, "seed", to, help, "SEED", shown, parse_seed);
}

std::vector<std::string> expand_config_file(const CLI::App& app, std::vector<std::string> arguments) {
  const auto flag = std::find(arguments.begin(), arguments.end(), "--config");
  if (flag == arguments.end() || flag + 1 == arguments.end()) return arguments;
  const std::string file = *(flag + 1);
  arguments.erase(flag, flag + 2);
  const auto parsed = read_toml_file(file);
  if (!parsed.ok()) throw CLI::ValidationError("--config", parsed.status().message());
  const CLI::App* command = find_command(app, arguments);
  std::vector<std::string> flags;
  for (const auto& [key, value] : *parsed) {
    const std::string name = "--" + std::string(key.str());
    if (command == nullptr || command->get_option_no_throw(name) == nullptr) {
      throw CLI::ValidationError("--config",
                                 fmt::format("{}:{}: unknown key '{}'; keys are the flags of `foliot {} --help`", file,
                                             value.source().begin.line, std::string(key.str()),
                                             arguments.empty() ? "COMMAND" : arguments.front()));
    }
    // What the command line says itself comes later and wins.
    const bool given = std::any_of(arguments.begin(), arguments.end(), [&](const std::string& argument) {
      return argument == name || argument.starts_with(name + "=");
    });
    if (!given) flags.push_back(name + "=" + flag_value(value));
  }
  arguments.insert(arguments.begin() + 1, flags.begin(), flags.end());
  return arguments;
}

}  // namespace foliot
