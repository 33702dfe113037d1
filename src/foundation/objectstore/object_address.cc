#include "foundation/objectstore/object_address.h"

#include <fmt/format.h>

#include <algorithm>

namespace foliot {
namespace {

constexpr std::string_view kScheme = "s3://";
constexpr size_t kBucketBytesMin = 3;
constexpr size_t kBucketBytesMax = 63;
constexpr size_t kKeyBytesMax = 1024;
constexpr size_t kFileNameBytesMax = 255;

bool is_bucket_letter(char c) {
  return ('a' <= c && c <= 'z') || ('0' <= c && c <= '9') || c == '-' || c == '.' || c == '_';
}

}  // namespace

bool is_safe_key(std::string_view key) {
  if (key.size() > kKeyBytesMax) return false;
  if (std::ranges::any_of(key, [](char c) { return static_cast<unsigned char>(c) < 32 || c == 127 || c == '\\'; })) {
    return false;
  }
  while (true) {
    const size_t slash = key.find('/');
    const std::string_view part = key.substr(0, slash);
    if (part.empty() || part == "." || part == ".." || part.size() > kFileNameBytesMax) return false;
    if (slash == key.npos) return true;
    key.remove_prefix(slash + 1);
  }
}

Result<ObjectAddress> ObjectAddress::parse(const std::string& text) {
  const auto wrong = [&](std::string_view why) {
    return Status::invalid_argument(fmt::format("'{}' {}; give s3://BUCKET or s3://BUCKET/PREFIX", text, why));
  };
  if (!is_one(text)) return wrong("does not begin with s3://");
  std::string_view rest(text);
  rest.remove_prefix(kScheme.size());
  const size_t slash = std::min(rest.find('/'), rest.size());
  const std::string_view bucket = rest.substr(0, slash);
  if (bucket.size() < kBucketBytesMin || bucket.size() > kBucketBytesMax ||
      !std::ranges::all_of(bucket, is_bucket_letter) || bucket.find("..") != bucket.npos) {
    return wrong(fmt::format("has a bucket of {} bytes that is no name of one (3 to 63 of a-z, 0-9, '-', '.', '_')",
                             bucket.size()));
  }
  std::string_view prefix = rest.substr(slash);
  while (prefix.starts_with('/')) prefix.remove_prefix(1);
  while (prefix.ends_with('/')) prefix.remove_suffix(1);
  if (!prefix.empty() && !is_safe_key(prefix)) {
    return wrong("has a prefix with an empty part, '.', '..', a backslash or a control character");
  }
  return ObjectAddress{.bucket = std::string(bucket), .prefix = std::string(prefix)};
}

std::string ObjectAddress::text() const {
  return fmt::format("{}{}{}{}", kScheme, bucket, prefix.empty() ? "" : "/", prefix);
}

std::string ObjectAddress::name() const {
  return prefix.empty() ? bucket : prefix.substr(prefix.rfind('/') == prefix.npos ? 0 : prefix.rfind('/') + 1);
}

}  // namespace foliot
