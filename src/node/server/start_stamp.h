// start_stamp(): distinguishes this process from those before it at the same address.
//
// Threading: any.
#ifndef FOLIOT_NODE_SERVER_START_STAMP_H_
#define FOLIOT_NODE_SERVER_START_STAMP_H_

#include <fmt/format.h>

#include <string>

#include "foundation/platform/wall_clock.h"

namespace foliot {

// Hexadecimal digits: when it was asked, to the nanosecond.
inline std::string start_stamp() { return fmt::format("{:x}", wall_now().nanoseconds()); }

}  // namespace foliot

#endif  // FOLIOT_NODE_SERVER_START_STAMP_H_
