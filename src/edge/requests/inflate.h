// Inflating request bodies.
#ifndef FOLIOT_EDGE_REQUESTS_INFLATE_H_
#define FOLIOT_EDGE_REQUESTS_INFLATE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "foundation/base/status.h"

namespace foliot {

// gzip data, of one member or several, or zlib ("deflate") data, whichever it is. Errors: kInvalidArgument if it
// is damaged, cut off, or followed by other bytes, kResourceExhausted if more than `bytes_max` come out.
Result<std::string> inflate_bytes(std::string_view compressed, uint64_t bytes_max);

}  // namespace foliot

#endif  // FOLIOT_EDGE_REQUESTS_INFLATE_H_
