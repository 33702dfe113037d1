// A string as the Open Inference Protocol's raw data has it: its length as u32, little-endian,
// then its bytes.
#ifndef FOLIOT_FOUNDATION_CORE_SERIALIZED_STRING_H_
#define FOLIOT_FOUNDATION_CORE_SERIALIZED_STRING_H_

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace foliot {

// REQUIRES: less than 4 GiB.
inline void append_string(std::string& bytes, std::string_view text) {
  static_assert(std::endian::native == std::endian::little);
  const auto length = static_cast<uint32_t>(text.size());
  bytes.append(reinterpret_cast<const char*>(&length), sizeof(length)).append(text);
}

// The elements of a tensor.
inline std::string serialized(std::initializer_list<std::string_view> texts) {
  std::string bytes;
  for (const std::string_view text : texts) append_string(bytes, text);
  return bytes;
}

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_SERIALIZED_STRING_H_
