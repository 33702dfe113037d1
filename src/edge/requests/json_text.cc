#include "edge/requests/json_text.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <iterator>
#include <type_traits>

#include "foundation/base/check.h"
#include "foundation/core/bounded_row.h"

namespace foliot {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Length of the well-formed UTF-8 sequence that `text` starts with; 0: none.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto continues = [&](size_t i) { return i < text.size() && (byte(i) & 0xC0) == 0x80; };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return continues(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (!continues(1) || !continues(2)) return 0;
    const bool overlong = first == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = first == 0xED && byte(1) >= 0xA0;
    return overlong || surrogate ? 0 : 3;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (!continues(1) || !continues(2) || !continues(3)) return 0;
    const bool overlong = first == 0xF0 && byte(1) < 0x90;
    const bool beyond = first == 0xF4 && byte(1) >= 0x90;
    return overlong || beyond ? 0 : 4;
  }
  return 0;
}

void append_escaped(std::string& json, char c) {
  switch (c) {
    case '"': json += "\\\""; return;
    case '\\': json += "\\\\"; return;
    case '\n': json += "\\n"; return;
    case '\r': json += "\\r"; return;
    case '\t': json += "\\t"; return;
    default: break;
  }
  if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
    fmt::format_to(std::back_inserter(json), "\\u{:04x}", static_cast<unsigned>(c));
  else
    json += c;
}

// As Triton writes it, and its clients read it; JSON has no number for it.
std::string_view name_of_not_finite(double value) {
  if (std::isnan(value)) return "NaN";
  return value > 0 ? "Infinity" : "-Infinity";
}

template <typename T>
Status append_numbers(std::string& json, std::span<const std::byte> bytes, NotFinite not_finite) {
  FOLIOT_CHECK(bytes.size() % sizeof(T) == 0);
  fmt::memory_buffer text;
  for (size_t offset = 0; offset < bytes.size(); offset += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    if (offset > 0) text.push_back(',');
    if constexpr (std::is_floating_point_v<T>) {
      if (!std::isfinite(value)) {
        text.append(not_finite == NotFinite::kNull ? "null" : name_of_not_finite(value));
        continue;
      }
    }
    fmt::format_to(std::back_inserter(text), "{}", value);
  }
  json.append(text.data(), text.size());
  return Status::ok_status();
}

void append_booleans(std::string& json, std::span<const std::byte> bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i > 0) json += ',';
    json += bytes[i] != std::byte{0} ? "true" : "false";
  }
}

void append_strings(std::string& json, std::span<const std::byte> bytes) {
  for (bool first = true; !bytes.empty(); first = false) {
    const std::optional<uint64_t> taken = strings_bytes(bytes, 1);
    FOLIOT_CHECK(taken);
    const std::span<const std::byte> text = bytes.first(*taken).subspan(kStringLengthBytes);
    if (!first) json += ',';
    append_json_string(json, {reinterpret_cast<const char*>(text.data()), text.size()});
    bytes = bytes.subspan(*taken);
  }
}

Status append_elements(std::string& json, DataType type, std::span<const std::byte> bytes,
                       NotFinite not_finite = NotFinite::kNamed) {
  switch (type) {
    case DataType::kBool: append_booleans(json, bytes); return Status::ok_status();
    case DataType::kUint8: return append_numbers<uint8_t>(json, bytes, not_finite);
    case DataType::kUint16: return append_numbers<uint16_t>(json, bytes, not_finite);
    case DataType::kUint32: return append_numbers<uint32_t>(json, bytes, not_finite);
    case DataType::kUint64: return append_numbers<uint64_t>(json, bytes, not_finite);
    case DataType::kInt8: return append_numbers<int8_t>(json, bytes, not_finite);
    case DataType::kInt16: return append_numbers<int16_t>(json, bytes, not_finite);
    case DataType::kInt32: return append_numbers<int32_t>(json, bytes, not_finite);
    case DataType::kInt64: return append_numbers<int64_t>(json, bytes, not_finite);
    case DataType::kFloat32: return append_numbers<float>(json, bytes, not_finite);
    case DataType::kFloat64: return append_numbers<double>(json, bytes, not_finite);
    case DataType::kBytes: append_strings(json, bytes); return Status::ok_status();
    case DataType::kFloat16:
    case DataType::kBfloat16: break;
  }
  return Status::invalid_argument(fmt::format("{} cannot be written as JSON; ask for binary data", to_string(type)));
}

}  // namespace

void append_json_string(std::string& json, std::string_view text) {
  json += '"';
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 1) append_escaped(json, text.front());
    if (length > 1) json += text.substr(0, length);
    if (length == 0) json += kReplacement;
    text.remove_prefix(length == 0 ? 1 : length);
  }
  json += '"';
}

void append_json_shape(std::string& json, const Shape& shape) { json += to_string(shape); }

Status append_json_elements(std::string& json, DataType type, std::span<const std::byte> bytes) {
  json += '[';
  FOLIOT_RETURN_IF_ERROR(append_elements(json, type, bytes));
  json += ']';
  return Status::ok_status();
}

Status append_json_tensor(std::string& json, DataType type, std::span<const int64_t> shape, NotFinite not_finite,
                          std::span<const std::byte>& bytes) {
  if (shape.size() > 1) {
    json += '[';
    for (int64_t i = 0; i < shape[0]; ++i) {
      if (i > 0) json += ',';
      FOLIOT_RETURN_IF_ERROR(append_json_tensor(json, type, shape.subspan(1), not_finite, bytes));
    }
    json += ']';
    return Status::ok_status();
  }
  const uint64_t count = shape.empty() ? 1 : static_cast<uint64_t>(shape[0]);
  const std::optional<uint64_t> size = type == DataType::kBytes ? strings_bytes(bytes, count) : count * size_of(type);
  FOLIOT_CHECK(size && *size <= bytes.size());
  if (!shape.empty()) json += '[';
  FOLIOT_RETURN_IF_ERROR(append_elements(json, type, bytes.first(*size), not_finite));
  if (!shape.empty()) json += ']';
  bytes = bytes.subspan(*size);
  return Status::ok_status();
}

}  // namespace foliot
