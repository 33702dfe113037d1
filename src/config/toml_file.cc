#include "config/toml_file.h"

#include <fmt/format.h>

#include <span>
#include <sstream>
#include <system_error>

#include "base/hash.h"

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

std::string content_hash(const toml::table& table) {
  std::ostringstream text;
  text << table;
  return hash_hex(std::as_bytes(std::span(text.view())));
}

}  // namespace foliot
