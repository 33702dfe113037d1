// Reads a TOML file; exceptions of the library become a Status.
#ifndef FOLIOT_FOUNDATION_CONFIG_TOML_FILE_H_
#define FOLIOT_FOUNDATION_CONFIG_TOML_FILE_H_

#include <toml++/toml.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "foundation/base/status.h"

namespace foliot {

// Errors: kInvalidArgument naming file and, where it is read, line.
Result<toml::table> read_toml_file(const std::filesystem::path& file);
// The same of what such a file says; `file` is what errors call it.
Result<toml::table> parse_toml(std::string_view text, const std::string& file);

// A hash of what it says, however it is written.
std::string content_hash(const toml::table& table);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CONFIG_TOML_FILE_H_
