#include "config/toml_file.h"

#include <fmt/format.h>

#include <system_error>

namespace foliot {

Result<toml::table> read_toml_file(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) {
    return Status::invalid_argument(fmt::format("{}: no such file", file.string()));
  }
  if (std::filesystem::is_directory(file, error)) {
    return Status::invalid_argument(fmt::format("{}: a folder, not a file", file.string()));
  }
  try {
    return toml::parse_file(file.string());
  } catch (const toml::parse_error& wrong) {
    return Status::invalid_argument(
        fmt::format("{}:{}: {}", file.string(), wrong.source().begin.line, wrong.description()));
  }
}

Result<toml::table> parse_toml(std::string_view text, const std::string& file) {
  try {
    return toml::parse(text, file);
  } catch (const toml::parse_error& wrong) {
    return Status::invalid_argument(fmt::format("{}:{}: {}", file, wrong.source().begin.line, wrong.description()));
  }
}

}  // namespace foliot
