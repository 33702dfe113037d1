#include "foundation/base/escaped_text.h"

#include <array>
#include <charconv>
#include <cstdint>

namespace foliot {
namespace {

struct Character {
  char32_t value = 0;
  size_t bytes = 0;  // 0: the text begins with no character
};

// The first character of a text that is not empty, if it is valid UTF-8: in its
// shortest form, and no surrogate.
Character first_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1};
  const size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {};
  auto value = static_cast<char32_t>(lead & (0x7F >> bytes));
  for (size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0) != 0x80) return {};
    value = value << 6 | (next & 0x3F);
  }
  constexpr std::array<char32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < kLeast[bytes] || surrogate || value > 0x10FFFF) return {};
  return {value, bytes};
}

bool printable(char32_t c) {
  if (c < 0x20 || (c >= 0x7F && c <= 0x9F)) return false;
  const bool line_or_direction = (c >= 0x200E && c <= 0x200F) || (c >= 0x2028 && c <= 0x202E) ||
                                 (c >= 0x2066 && c <= 0x2069) || c == 0x061C || c == 0xFEFF;
  return !line_or_direction;
}

void append_bytes(std::string& to, std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    to += "\\x";
    to += kDigits[byte >> 4];
    to += kDigits[byte & 15];
  }
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string to;
  while (!text.empty()) {
    const Character character = first_character(text);
    const std::string_view bytes = text.substr(0, character.bytes == 0 ? 1 : character.bytes);
    if (character.bytes == 0 || !printable(character.value)) {
      append_bytes(to, bytes);
    } else {
      if (character.value == '\\') to += '\\';
      to += bytes;
    }
    text.remove_prefix(bytes.size());
  }
  return to;
}

std::optional<std::string> unescaped(std::string_view text) {
  std::string to;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      to += text[i];
      continue;
    }
    const std::string_view rest = text.substr(i + 1);
    if (rest.starts_with('\\')) {
      to += '\\';
      ++i;
      continue;
    }
    uint8_t byte = 0;
    if (!rest.starts_with('x') || rest.size() < 3) return std::nullopt;
    const auto [end, error] = std::from_chars(rest.data() + 1, rest.data() + 3, byte, 16);
    if (error != std::errc() || end != rest.data() + 3) return std::nullopt;
    to += static_cast<char>(byte);
    i += 3;
  }
  return to;
}

std::string in_quotes(std::string_view text) {
  std::string to = "'";
  for (const char c : escaped(text)) {
    if (c == '\'') to += '\\';
    to += c;
  }
  return to + "'";
}

}  // namespace foliot
