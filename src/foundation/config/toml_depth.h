// How deep the keys of a TOML text lead. Each part of a dotted key makes a table within the one before, and the parser
// and whatever visits a table go down by recursion: depth is counted before anything is parsed.
//
// Values within each other are bounded by the parser itself.
#ifndef FOLIOT_FOUNDATION_CONFIG_TOML_DEPTH_H_
#define FOLIOT_FOUNDATION_CONFIG_TOML_DEPTH_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "foundation/base/status.h"

namespace foliot {

inline constexpr size_t kTomlKeyPartsMax = 32;

// Errors: kInvalidArgument naming `file` and the line of a key of more than kTomlKeyPartsMax parts.
Status check_toml_depth(std::string_view text, const std::string& file);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CONFIG_TOML_DEPTH_H_
