#include "foundation/objectstore/etag_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "foundation/base/check.h"

namespace foliot {
namespace {

constexpr size_t kMd5Digits = 32;

bool is_hex_digit(char c) { return ('0' <= c && c <= '9') || ('a' <= c && c <= 'f') || ('A' <= c && c <= 'F'); }
char lower(char c) { return 'A' <= c && c <= 'F' ? static_cast<char>(c + 32) : c; }

bool begins_with_md5(std::string_view etag) {
  return etag.size() >= kMd5Digits && std::ranges::all_of(etag.substr(0, kMd5Digits), is_hex_digit);
}

}  // namespace

bool EtagCheck::is_of_parts(const StoredObject& object) {
  const std::string_view etag = object.etag;
  return begins_with_md5(etag) && etag.size() > kMd5Digits + 1 && etag[kMd5Digits] == '-';
}

EtagCheck::EtagCheck(const StoredObject& object, std::optional<uint64_t> part_bytes) : etag_(object.etag) {
  std::ranges::transform(etag_, etag_.begin(), lower);
  if (is_of_parts(object)) {
    if (!part_bytes || *part_bytes == 0) return;
    kind_ = Kind::kParts;
    part_bytes_ = part_left_ = *part_bytes;
  } else if (begins_with_md5(etag_) && etag_.size() == kMd5Digits) {
    kind_ = Kind::kWhole;
  }
}

void EtagCheck::update(std::span<const std::byte> bytes) {
  if (kind_ == Kind::kWhole) content_.update(bytes);
  while (kind_ == Kind::kParts && !bytes.empty()) {
    const auto now = bytes.first(std::min<uint64_t>(bytes.size(), part_left_));
    content_.update(now);
    bytes = bytes.subspan(now.size());
    part_left_ -= now.size();
    if (part_left_ > 0) continue;
    parts_digest_.update(content_.finish());
    ++parts_;
    part_left_ = part_bytes_;
  }
}

bool EtagCheck::matches() {
  FOLIOT_CHECK(is_possible());
  if (kind_ == Kind::kWhole) return to_hex(content_.finish()) == etag_;
  if (part_left_ < part_bytes_) {
    parts_digest_.update(content_.finish());
    ++parts_;
  }
  return fmt::format("{}-{}", to_hex(parts_digest_.finish()), parts_) == etag_;
}

}  // namespace foliot
