// Base64 (RFC 4648, section 4), by which text carries bytes: letters of 6 bits, filled up by '=' to whole groups of 4.
//
// Threading: pure functions.
#ifndef FOLIOT_FOUNDATION_BASE_BASE64_H_
#define FOLIOT_FOUNDATION_BASE_BASE64_H_

#include <optional>
#include <string>
#include <string_view>

namespace foliot {

std::string encode_base64(std::string_view bytes);
// Returns nullopt of what is no base64: another letter, or no whole groups. Bits beyond the last byte are ignored.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_BASE_BASE64_H_
