#include "config/toml_file.h"

#include <fmt/format.h>

namespace foliot {

Result<toml::table> read_toml_file(const std::filesystem::path& file) {
  try {
    return toml::parse_file(file.string());
  } catch (const toml::parse_error& error) {
    return Status::invalid_argument(
        fmt::format("{}:{}: {}", file.string(), error.source().begin.line, error.description()));
  }
}

}  // namespace foliot
