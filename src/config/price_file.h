// The price file: dollars per hour of a device, by kind. A TOML file with a line for each
// kind:
//
//   cpu = 0.17
//   "container:onnx" = 0.34
#ifndef FOLIOT_CONFIG_PRICE_FILE_H_
#define FOLIOT_CONFIG_PRICE_FILE_H_

#include <filesystem>
#include <map>
#include <string>

#include "base/status.h"

namespace foliot {

using KindPrices = std::map<std::string, double, std::less<>>;

// Errors: kInvalidArgument naming the file and, of what it says, line and kind.
Result<KindPrices> read_price_file(const std::filesystem::path& file);

}  // namespace foliot

#endif  // FOLIOT_CONFIG_PRICE_FILE_H_
