#include "edge/requests/content_type.h"

#include <array>
#include <cstring>
#include <optional>

#include "answer/inference/foreign_clients.h"
#include "foundation/base/base64.h"
#include "foundation/core/serialized_string.h"

namespace foliot {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"", "str", "base64", "datetime"};

// Calls visit(string) for each that is whole.
void for_each_string(std::span<const std::byte> strings, const auto& visit) {
  while (strings.size() >= sizeof(uint32_t)) {
    uint32_t length = 0;
    std::memcpy(&length, strings.data(), sizeof(length));
    strings = strings.subspan(sizeof(length));
    if (length > strings.size()) return;
    visit(std::string_view(reinterpret_cast<const char*>(strings.data()), length));
    strings = strings.subspan(length);
  }
}

}  // namespace

ContentType parse_content_type(std::string_view name) {
  for (size_t i = 1; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<ContentType>(i);
  }
  return ContentType::kNone;
}

std::string decode_base64_strings(std::span<const std::byte> strings) {
  std::string decoded;
  for_each_string(strings, [&](std::string_view text) {
    const std::optional<std::string> bytes = decode_base64(text);
    append_string(decoded, bytes ? std::string_view(*bytes) : text);
  });
  return decoded;
}

std::string encode_base64_strings(std::span<const std::byte> strings) {
  std::string encoded;
  for_each_string(strings, [&](std::string_view bytes) { append_string(encoded, encode_base64(bytes)); });
  return encoded;
}

std::string_view content_type_of(const TensorSpec& output, ContentType asked) {
  if (output.type == DataType::kBytes && asked != ContentType::kNone) return kNames[static_cast<size_t>(asked)];
  return is_method(output.name) || output.name == kUnnamedOutput ? "np" : "";
}

bool is_base64(const TensorSpec& output, ContentType asked) {
  return output.type == DataType::kBytes && asked == ContentType::kBase64;
}

}  // namespace foliot
