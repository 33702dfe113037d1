// Writing JSON: the few pieces that responses are made of.
#ifndef FOLIOT_EDGE_REQUESTS_JSON_TEXT_H_
#define FOLIOT_EDGE_REQUESTS_JSON_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "foundation/base/status.h"
#include "foundation/core/tensor.h"

namespace foliot {

// Appends `text` in quotes, escaped. Bytes that are not UTF-8 are replaced by
// U+FFFD, so that what is written can always be read.
void append_json_string(std::string& json, std::string_view text);

// Appends [1,2,3].
void append_json_shape(std::string& json, const Shape& shape);

// Appends the elements as one flat array; floating point with the fewest digits
// that read back as the same number. What is not finite is NaN, Infinity or -Infinity, as
// Triton writes it, which many readers of JSON refuse. BYTES are strings, as append_json_string()
// writes them. Errors: kInvalidArgument for 16-bit floats, advising binary data. REQUIRES: whole
// elements.
Status append_json_elements(std::string& json, DataType type, std::span<const std::byte> bytes);

// How what is not finite is written: as above, or as null.
enum class NotFinite : uint8_t { kNamed, kNull };
// Appends a tensor of `shape` as lists within each other, a scalar without, from the front of `bytes`, which lose it.
// Errors and REQUIRES: as append_json_elements().
Status append_json_tensor(std::string& json, DataType type, std::span<const int64_t> shape, NotFinite not_finite,
                          std::span<const std::byte>& bytes);

}  // namespace foliot

#endif  // FOLIOT_EDGE_REQUESTS_JSON_TEXT_H_
