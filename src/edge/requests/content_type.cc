#include "edge/requests/content_type.h"

#include <array>
#include <cstring>
#include <optional>

#include "answer/inference/foreign_clients.h"
#include "foundation/core/serialized_string.h"

namespace foliot {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::array<std::string_view, 4> kNames = {"", "str", "base64", "datetime"};

std::string encode_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const std::string_view group = bytes.substr(i, 3);
    uint32_t bits = 0;
    for (size_t j = 0; j < 3; ++j) bits = bits << 8 | (j < group.size() ? static_cast<uint8_t>(group[j]) : 0);
    for (size_t j = 0; j < 4; ++j) text += j <= group.size() ? kAlphabet[bits >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

// nullopt: it is no base64.
std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const size_t end = text.find_last_not_of('=') + 1;  // npos + 1 is 0
  if (text.size() - end > 2) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t bits = 0, count = 0;
  for (const char letter : text.substr(0, end)) {
    const size_t value = kAlphabet.find(letter);
    if (value == std::string_view::npos) return std::nullopt;
    bits = (bits << 6 | static_cast<uint32_t>(value)) & 0xFFFFFF;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xFF);
  }
  return bytes;
}

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
