#include "foundation/config/toml_file.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <span>
#include <sstream>
#include <string>
#include <system_error>

#include "foundation/base/hash.h"
#include "foundation/config/toml_depth.h"

namespace foliot {

Result<toml::table> read_toml_file(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) {
    return Status::invalid_argument(fmt::format("{}: no such file; check the path", file.string()));
  }
  if (std::filesystem::is_directory(file, error)) {
    return Status::invalid_argument(fmt::format("{}: a folder, not a file", file.string()));
  }
  std::ifstream stream(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (!stream.is_open() || stream.bad()) {
    return Status::invalid_argument(fmt::format("{}: cannot be read", file.string()));
  }
  return parse_toml(text, file.string());
}

Result<toml::table> parse_toml(std::string_view text, const std::string& file) {
  FOLIOT_RETURN_IF_ERROR(check_toml_depth(text, file));
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
