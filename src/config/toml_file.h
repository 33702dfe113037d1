// Reads a TOML file; exceptions of the library become a Status.
#ifndef FOLIOT_CONFIG_TOML_FILE_H_
#define FOLIOT_CONFIG_TOML_FILE_H_

#include <toml++/toml.h>

#include <filesystem>

#include "base/status.h"

namespace foliot {

// Errors: kInvalidArgument naming file and, where it is read, line.
Result<toml::table> read_toml_file(const std::filesystem::path& file);

}  // namespace foliot

#endif  // FOLIOT_CONFIG_TOML_FILE_H_
