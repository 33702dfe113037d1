// The price file: dollars per hour of a device, by kind. A TOML file with a line for each
// kind:
//
//   cpu = 0.17
//   "container:onnx" = 0.34
//
// Where there are only so many devices of a kind, which planning takes into account:
//
//   cpu = { dollars = 0.17, devices = 8 }
#ifndef FOLIOT_FOUNDATION_CONFIG_PRICE_FILE_H_
#define FOLIOT_FOUNDATION_CONFIG_PRICE_FILE_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "foundation/base/status.h"

namespace foliot {

using KindPrices = std::map<std::string, double, std::less<>>;

using KindLimits = std::map<std::string, uint32_t, std::less<>>;

struct KindOffers {
  KindPrices prices;
  KindLimits devices;  // of kinds that have a limit
};
// Errors as below.
Result<KindOffers> read_offer_file(const std::filesystem::path& file);
// The prices alone. Errors: kInvalidArgument naming the file and, of what it says, line and kind.
Result<KindPrices> read_price_file(const std::filesystem::path& file);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CONFIG_PRICE_FILE_H_
