#include "foundation/net/http_call.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include "foundation/net/http_connection.h"

namespace foliot {
namespace {

using ParsedUrl = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

// Empty: it has no such part.
std::string part_of(CURLU* url, CURLUPart part, unsigned flags) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return "";
  std::string copy(text);
  curl_free(text);
  return copy;
}

}  // namespace

std::string_view HttpAnswer::header(std::string_view name) const {
  const auto found =
      std::ranges::find(headers, name, [](const auto& header) { return std::string_view(header.first); });
  return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

Result<UrlParts> parse_url(const std::string& url) {
  const auto wrong = [&](std::string_view why) { return Status::invalid_argument(fmt::format("'{}' {}", url, why)); };
  const ParsedUrl parsed(curl_url(), curl_url_cleanup);
  if (parsed == nullptr) return Status::unavailable("libcurl cannot begin");
  if (const CURLUcode code = curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0); code != CURLUE_OK) {
    return wrong(fmt::format("is no URL: {}", curl_url_strerror(code)));
  }
  UrlParts parts{.scheme = part_of(parsed.get(), CURLUPART_SCHEME, 0),
                 .host = part_of(parsed.get(), CURLUPART_HOST, 0)};
  if (parts.scheme != "http" && parts.scheme != "https") return wrong("must begin with http:// or https://");
  if (!part_of(parsed.get(), CURLUPART_USER, 0).empty() || !part_of(parsed.get(), CURLUPART_PASSWORD, 0).empty()) {
    return wrong("has a user or a password, which is not allowed");
  }
  std::ranges::transform(parts.host, parts.host.begin(),
                         [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  const std::string port = part_of(parsed.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), parts.port);
  if (error != std::errc() || end != port.data() + port.size()) return wrong("has no port");
  return parts;
}

Result<HttpAnswer> http_call(const HttpCall& call) { return HttpConnection().call(call); }

}  // namespace foliot
