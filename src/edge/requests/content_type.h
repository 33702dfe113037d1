// ContentType: how clients of MLServer name what the strings of a tensor are, by the parameter `content_type` of an
// input or of an output that they ask for; and base64, which only text can carry.
//
// Threading: pure functions.
#ifndef FOLIOT_EDGE_REQUESTS_CONTENT_TYPE_H_
#define FOLIOT_EDGE_REQUESTS_CONTENT_TYPE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "foundation/core/tensor.h"

namespace foliot {

inline constexpr std::string_view kContentTypeParameter = "content_type";

enum class ContentType : uint8_t { kNone, kText, kBase64, kDatetime };

// "str", "base64", "datetime"; kNone for all others, which say nothing here.
ContentType parse_content_type(std::string_view name);

// The bytes that the strings of a tensor (foundation/core/serialized_string.h) are the base64 of. A string that is no
// base64 stays as it is, as with MLServer. A string that is not whole is left out, here and below.
std::string decode_base64_strings(std::span<const std::byte> strings);
std::string encode_base64_strings(std::span<const std::byte> strings);

// How a client reads an output for which it has asked so; one that MLServer names, too, is its "np". Empty: nothing is
// said.
std::string_view content_type_of(const TensorSpec& output, ContentType asked);
// Whether its strings are answered in base64.
bool is_base64(const TensorSpec& output, ContentType asked);

}  // namespace foliot

#endif  // FOLIOT_EDGE_REQUESTS_CONTENT_TYPE_H_
