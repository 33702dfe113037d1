#include "foundation/objectstore/object_listing.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "foundation/objectstore/xml_leaves.h"

namespace foliot {
namespace {

constexpr std::string_view kHexDigits = "0123456789ABCDEF";

int digit_of(char c) {
  if ('0' <= c && c <= '9') return c - '0';
  if ('A' <= c && c <= 'F') return c - 'A' + 10;
  if ('a' <= c && c <= 'f') return c - 'a' + 10;
  return -1;
}

Status take_size(const std::string& text, uint64_t& bytes) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (error == std::errc() && end == text.data() + text.size()) return Status();
  return Status::invalid_argument(fmt::format("an object's Size '{}' is no number", text));
}

std::string without_quotes(std::string text) {
  std::erase(text, '"');
  return text;
}

}  // namespace

Result<ObjectListing> ObjectListing::parse(std::string_view xml) {
  ObjectListing listing;
  bool truncated = false;
  bool is_encoded = false;
  bool is_listing = false;
  StoredObject object;
  FOLIOT_RETURN_IF_ERROR(read_xml_leaves(xml, [&](std::string_view path, const std::string& text) -> Status {
    if (path == "ListBucketResult") is_listing = true;
    if (path == "ListBucketResult/EncodingType") is_encoded = text == "url";
    if (path == "ListBucketResult/IsTruncated") truncated = text == "true";
    if (path == "ListBucketResult/NextContinuationToken") listing.continuation = text;
    if (path == "ListBucketResult/Contents/Key") object.key = text;
    if (path == "ListBucketResult/Contents/ETag") object.etag = without_quotes(text);
    if (path == "ListBucketResult/Contents/Size") return take_size(text, object.bytes);
    if (path == "ListBucketResult/Contents") listing.objects.push_back(std::exchange(object, {}));
    return Status();
  }));
  if (!is_listing) return Status::invalid_argument("there is no ListBucketResult");
  if (truncated && listing.continuation.empty()) {
    return Status::invalid_argument("it is truncated and has no NextContinuationToken");
  }
  if (!truncated) listing.continuation.clear();
  for (StoredObject& each : listing.objects) {
    if (!is_encoded) break;
    FOLIOT_ASSIGN_OR_RETURN(each.key, percent_decoded(each.key));
  }
  return listing;
}

StoreError StoreError::parse(std::string_view xml) {
  StoreError error;
  const Status status = read_xml_leaves(xml, [&](std::string_view path, const std::string& text) {
    if (path == "Error/Code") error.code = text;
    if (path == "Error/Message") error.message = text;
    return Status();
  });
  return status.ok() ? error : StoreError();
}

std::string percent_encoded(std::string_view text, bool keep_slashes) {
  std::string encoded;
  for (const char c : text) {
    const bool as_it_is = ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') || c == '-' ||
                          c == '.' || c == '_' || c == '~' || (c == '/' && keep_slashes);
    if (as_it_is) {
      encoded += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += {'%', kHexDigits[byte >> 4], kHexDigits[byte & 15]};
    }
  }
  return encoded;
}

Result<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      decoded += ' ';  // as forms are encoded, which the stores do
    } else if (text[i] != '%') {
      decoded += text[i];
    } else {
      const int high = i + 3 <= text.size() ? digit_of(text[i + 1]) : -1;
      const int low = i + 3 <= text.size() ? digit_of(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        return Status::invalid_argument(fmt::format("the key '{}' has a '%' that no two digits follow", text));
      }
      decoded += static_cast<char>(16 * high + low);
      i += 2;
    }
  }
  return decoded;
}

}  // namespace foliot
