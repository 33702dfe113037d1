// Inflating request bodies.
#ifndef FOLIOT_FRONTEND_INFLATE_H_
#define FOLIOT_FRONTEND_INFLATE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace foliot {

// gzip or zlib ("deflate") data, whichever it is. Errors: kInvalidArgument if it
// is damaged or cut off, kResourceExhausted if more than `bytes_max` come out.
Result<std::string> inflate_bytes(std::string_view compressed, uint64_t bytes_max);

}  // namespace foliot

#endif  // FOLIOT_FRONTEND_INFLATE_H_
