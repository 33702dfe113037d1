// Quantities as people write them: "50ms", "1.5s", "256MiB".
#ifndef FOLIOT_FOUNDATION_BASE_UNITS_H_
#define FOLIOT_FOUNDATION_BASE_UNITS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

// A number and one of ns, us, ms, s, m, h. Errors name the text and show examples.
Result<Duration> parse_duration(std::string_view text);
// A number and one of B, KiB, MiB, GiB, TiB, kB, MB, GB, TB.
Result<uint64_t> parse_bytes(std::string_view text);

// With three significant digits: "12.3 ms", "1.00 GiB".
std::string format_duration(Duration duration);
std::string format_bytes(uint64_t bytes);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_BASE_UNITS_H_
