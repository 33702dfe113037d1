#include "foundation/objectstore/s3_store.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <utility>

#include "foundation/base/error_text.h"
#include "foundation/objectstore/digest.h"
#include "foundation/objectstore/object_listing.h"
#include "foundation/platform/wall_clock.h"

namespace foliot {
namespace {

constexpr std::string_view kRegionDefault = "us-east-1";
// Of a page of a listing: a thousand objects with keys of 1,024 bytes, all escaped.
constexpr size_t kPageBytesMax = 8 << 20;
constexpr std::string_view kEmptySha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

bool is_success(const HttpAnswer& answer) { return answer.code >= 200 && answer.code < 300; }

std::string without_quotes_and_weakness(std::string_view etag) {
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  std::string bare(etag);
  std::erase(bare, '"');
  return bare;
}

std::optional<uint64_t> number_of(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && !text.empty() ? std::optional(number)
                                                                                   : std::nullopt;
}

// By how much this machine's clock is ahead of the one that wrote this header Date.
std::optional<Duration> clock_ahead_of(std::string_view date) {
  tm fields{};
  if (::strptime(std::string(date).c_str(), "%a, %d %b %Y %H:%M:%S GMT", &fields) == nullptr) return std::nullopt;
  return (wall_now() - TimePoint()) - Duration::seconds(::timegm(&fields));
}

std::string skew_text(const HttpAnswer& answer) {
  const std::optional<Duration> ahead = clock_ahead_of(answer.header("date"));
  if (!ahead) return "this machine's clock differs from the store's";
  const bool is_ahead = *ahead > Duration();
  return fmt::format("this machine's clock is {:.0f} s {} the store's", (is_ahead ? *ahead : -*ahead).to_seconds(),
                     is_ahead ? "ahead of" : "behind");
}

// An object's encrypted form is hashed where a key of the customer's or of KMS encrypts it.
bool has_etag_of_content(const HttpAnswer& answer) {
  return !answer.header("x-amz-server-side-encryption").starts_with("aws:kms") &&
         answer.header("x-amz-server-side-encryption-customer-algorithm").empty();
}

// What to do about a status, as far as it is known; empty: nothing.
std::string remedy(const HttpAnswer& answer, const StoreError& error) {
  if (error.code == "RequestTimeTooSkewed") return skew_text(answer) + "; set it (NTP)";
  if (error.code == "NoSuchBucket") return "name a bucket that is there, or its store by --endpoint";
  if (error.code == "SignatureDoesNotMatch") return "compare AWS_SECRET_ACCESS_KEY and the region (AWS_REGION)";
  if (error.code == "InvalidAccessKeyId") return "compare AWS_ACCESS_KEY_ID, and the store's address (--endpoint)";
  if (error.code == "ExpiredToken") return "renew the session's credentials";
  if (answer.code == 301 || answer.code == 307 || error.code == "AuthorizationHeaderMalformed") {
    const std::string_view region = answer.header("x-amz-bucket-region");
    return region.empty() ? "name the bucket's region by AWS_REGION, or its store by --endpoint"
                          : fmt::format("the bucket is in the region {}: set AWS_REGION", region);
  }
  if (answer.code == 401 || answer.code == 403) {
    return "give these credentials the rights s3:ListBucket, s3:GetObject and, for --cache, s3:PutObject";
  }
  if (answer.code == 507 || error.code == "QuotaExceeded") return "the store is full";
  return "";
}

// 412: another version; 416: a shorter one.
bool is_gone(const HttpAnswer& answer) { return answer.code == 404 || answer.code == 412 || answer.code == 416; }

StatusCode code_of(const HttpAnswer& answer, const StoreError& error) {
  if (error.code == "RequestTimeTooSkewed") return StatusCode::kInvalidArgument;
  if (error.code == "NoSuchBucket" || is_gone(answer)) return StatusCode::kNotFound;
  if (answer.code == 507) return StatusCode::kResourceExhausted;
  return answer.code == 408 || answer.code == 429 || answer.code >= 500 ? StatusCode::kUnavailable
                                                                        : StatusCode::kInvalidArgument;
}

}  // namespace

Result<S3Store::Place> S3Store::where() const {
  constexpr std::string_view kBucket = "{bucket}";
  const std::string& bucket = options_.address.bucket;
  Place place;
  FOLIOT_ASSIGN_OR_RETURN(place.access, S3Access::read(options_.environment));
  place.region = !options_.region.empty() ? options_.region : place.access.region;
  if (place.region.empty()) place.region = kRegionDefault;
  place.url = !options_.endpoint.empty() ? options_.endpoint : place.access.endpoint;
  if (place.url.empty()) {
    // Amazon's certificates are for names of one part before ".s3".
    const bool fits_certificate = bucket.find_first_of("._") == bucket.npos;
    place.url = fmt::format("https://{}s3.{}.amazonaws.com", fits_certificate ? "{bucket}." : "", place.region);
  }
  while (place.url.ends_with('/')) place.url.pop_back();
  if (const size_t at = place.url.find(kBucket); at != place.url.npos) {
    place.url.replace(at, kBucket.size(), bucket);
  } else {
    place.url += "/" + bucket;
  }
  FOLIOT_RETURN_IF_ERROR(parse_url(place.url).status());
  return place;
}

std::string S3Store::what(const Request& request) const {
  return request.key.empty() ? place() : fmt::format("{}/{}", place(), request.key);
}

Result<HttpAnswer> S3Store::make(const Request& request, HttpCall call) {
  FOLIOT_ASSIGN_OR_RETURN(const Place place, where());
  call.method = request.method;
  call.url = place.url + "/";
  if (!request.key.empty()) {
    const std::string& prefix = options_.address.prefix;
    call.url += percent_encoded(prefix.empty() ? request.key : prefix + "/" + request.key, true);
  }
  char separator = '?';
  for (const auto& [name, value] : request.query) {
    call.url += std::exchange(separator, '&') + name + "=" + percent_encoded(value, false);
  }
  call.headers = request.headers;
  call.headers.push_back(
      fmt::format("x-amz-content-sha256: {}", request.body_sha256.empty() ? kEmptySha256 : request.body_sha256));
  if (!place.access.token.empty()) call.headers.push_back("x-amz-security-token: " + place.access.token);
  call.aws_scope = fmt::format("aws:amz:{}:s3", place.region);
  call.aws_key_id = place.access.key_id;
  call.aws_secret = place.access.secret;
  call.ca_file = place.access.ca_file;
  call.timeout = Duration();
  call.stall_timeout = kStallTimeout;
  call.cancelled = options_.cancelled;
  Result<HttpAnswer> answer = connection_.call(call);
  return answer.ok() ? std::move(answer) : answer.status().with_context(what(request));
}

Status S3Store::failure(const Request& request, const HttpAnswer& answer) const {
  const StoreError error = StoreError::parse(answer.body);
  std::string text = fmt::format("{}: the store answered {} to {}", what(request), answer.code, request.method);
  if (!error.code.empty())
    text += fmt::format(" ({}{}{})", error.code, error.message.empty() ? "" : ": ", error.message);
  if (answer.code == 412 || answer.code == 416) text += "; the object was changed after it was listed";
  if (const std::string advice = remedy(answer, error); !advice.empty()) text += "; " + advice;
  return {code_of(answer, error), text};
}

Result<std::vector<StoredObject>> S3Store::list() {
  const std::string prefix = options_.address.prefix.empty() ? "" : options_.address.prefix + "/";
  std::vector<StoredObject> objects;
  std::string continuation;
  do {
    Request request{.query = {{"encoding-type", "url"}, {"list-type", "2"}, {"prefix", prefix}}};
    if (!continuation.empty()) request.query["continuation-token"] = continuation;
    FOLIOT_ASSIGN_OR_RETURN(const HttpAnswer answer, make(request, {.answer_bytes_max = kPageBytesMax}));
    if (!is_success(answer)) return failure(request, answer);
    Result<ObjectListing> page = ObjectListing::parse(answer.body);
    if (!page.ok()) {
      return page.status().with_context(
          fmt::format("{}: the answer to ListObjectsV2 is not that of an object store (compare --endpoint)", place()));
    }
    if (page->continuation == continuation && !continuation.empty()) {
      return Status::unavailable(fmt::format("{}: the store named one page of its listing twice", place()));
    }
    continuation = page->continuation;
    for (StoredObject& object : page->objects) {
      if (!object.key.starts_with(prefix)) continue;
      object.key.erase(0, prefix.size());
      objects.push_back(std::move(object));
    }
    if (objects.size() > kObjectsMax) {
      return Status::invalid_argument(
          fmt::format("{} has more than {} objects; give a prefix that has only the models", place(), kObjectsMax));
    }
  } while (!continuation.empty());
  std::ranges::sort(objects, {}, &StoredObject::key);
  return objects;
}

Result<bool> S3Store::read(const StoredObject& object, uint64_t begin, const OnBytes& on_bytes) {
  const Request request{
      .key = object.key,
      .headers = {fmt::format("If-Match: \"{}\"", object.etag), fmt::format("Range: bytes={}-", begin)}};
  Status taken;
  const auto take = [&](const HttpAnswer& answer, std::span<const std::byte> bytes) {
    // A store that knows no If-Match or no ranges may answer by other bytes than those asked for.
    if (const std::string etag = without_quotes_and_weakness(answer.header("etag")); etag != object.etag) {
      taken = Status::not_found(fmt::format("{}: the object was changed after it was listed", what(request)));
    } else if (answer.code != 206 && begin > 0) {
      taken = Status::unavailable(fmt::format("{}: the store answered {} to a range", what(request), answer.code));
    } else if (answer.code == 206 && !answer.header("content-range").starts_with(fmt::format("bytes {}-", begin))) {
      taken = Status::unavailable(fmt::format("{}: asked for the bytes from {} on, the store gave '{}'", what(request),
                                              begin, answer.header("content-range")));
    } else {
      taken = on_bytes(bytes);
    }
    return taken.ok();
  };
  Result<HttpAnswer> answer = make(request, {.on_bytes = take});
  if (!taken.ok()) return taken;
  if (!answer.ok()) return answer.status();
  if (!is_success(*answer)) return failure(request, *answer);
  return has_etag_of_content(*answer);
}

Result<std::optional<uint64_t>> S3Store::part_bytes(const StoredObject& object) {
  const Request request{.method = "HEAD",
                        .key = object.key,
                        .query = {{"partNumber", "1"}},
                        .headers = {fmt::format("If-Match: \"{}\"", object.etag)}};
  FOLIOT_ASSIGN_OR_RETURN(const HttpAnswer answer, make(request, {}));
  if (answer.code == 404 || answer.code == 412) return failure(request, answer);
  const std::optional<uint64_t> bytes = number_of(answer.header("content-length"));
  // A store that does not know parts answers with the length of the whole, and not as to a range.
  const bool is_part = answer.code == 206 || (answer.code == 200 && bytes && *bytes < object.bytes);
  return is_part ? bytes : std::nullopt;
}

Result<StoredObject> S3Store::find(const std::string& key) {
  const Request request{.method = "HEAD", .key = key};
  FOLIOT_ASSIGN_OR_RETURN(const HttpAnswer answer, make(request, {}));
  if (!is_success(answer)) return failure(request, answer);
  const std::optional<uint64_t> bytes = number_of(answer.header("content-length"));
  if (!bytes) return Status::unavailable(fmt::format("{}: the store names no Content-Length", what(request)));
  return StoredObject{.key = key, .etag = without_quotes_and_weakness(answer.header("etag")), .bytes = *bytes};
}

Status S3Store::write(const std::string& key, int file) {
  struct stat about {};
  if (::fstat(file, &about) != 0) {
    return Status::internal(fmt::format("{}/{}: cannot look at the file: {}", place(), key, error_text(errno)));
  }
  Request request{.method = "PUT", .key = key};
  FOLIOT_ASSIGN_OR_RETURN(request.body_sha256, sha256_of_file(file));
  FOLIOT_ASSIGN_OR_RETURN(const HttpAnswer answer,
                          make(request, {.file = file, .file_bytes = static_cast<uint64_t>(about.st_size)}));
  return is_success(answer) ? Status() : failure(request, answer);
}

}  // namespace foliot
