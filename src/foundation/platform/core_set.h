// CoreSet: numbers of cores (processors, as the kernel numbers them), ascending, each
// once.
#ifndef FOLIOT_FOUNDATION_PLATFORM_CORE_SET_H_
#define FOLIOT_FOUNDATION_PLATFORM_CORE_SET_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/status.h"

namespace foliot {

using CoreSet = std::vector<uint32_t>;

// Cores have numbers below this, the kernel's limit for its fixed-size sets.
inline constexpr uint32_t kCoresMax = 1024;

// "0-3,8": as the kernel writes sets in its files. "" is the empty set. Errors:
// kInvalidArgument for what is no such list, a number of kCoresMax or above, or a core that
// stands there twice.
Result<CoreSet> parse_core_set(std::string_view text);
// "0-3,8".
std::string to_string(const CoreSet& cores);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PLATFORM_CORE_SET_H_
