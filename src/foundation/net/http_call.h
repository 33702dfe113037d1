// http_call(): one HTTP call by libcurl, of HTTP or HTTPS alone: without redirects, proxies, cookies, or credentials of
// the machine's user.
//
// Threading: any; blocks for at most the timeout.
#ifndef FOLIOT_FOUNDATION_NET_HTTP_CALL_H_
#define FOLIOT_FOUNDATION_NET_HTTP_CALL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

struct HttpAnswer {
  long code = 0;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers{};  // names in lower case

  // Empty: there is none of this name, which is in lower case.
  std::string_view header(std::string_view name) const;
};

struct HttpCall {
  std::string method = "GET";
  std::string url;
  std::vector<std::string> headers{};        // "NAME: VALUE"
  std::string body{};                        // of a method that has one
  std::string ca_file{};                     // PEM, of what signs the server's certificate; empty: the machine's
  bool any_certificate = false;              // the server's is not checked; for questions to this machine alone
  Duration timeout = Duration::seconds(10);  // of the whole call; 0: none
  // Ends a call that connects for so long, or in which no byte comes or goes for so long; in whole seconds; 0: none.
  Duration stall_timeout{};
  // Asked about once a second, and while bytes come; true ends the call.
  std::function<bool()> cancelled{};
  size_t answer_bytes_max = 64 << 10;
  // Gets the bytes of an answer with a code from 200 to 299 as they come, in place of HttpAnswer::body; false ends the
  // call. Of the answer, code and headers are known.
  std::function<bool(const HttpAnswer& answer, std::span<const std::byte> bytes)> on_bytes{};
  // A file from its beginning on, sent in place of `body`; -1: none.
  int file = -1;
  uint64_t file_bytes = 0;
  // Signed by Signature Version 4 of Amazon, in "aws:amz:REGION:SERVICE"; empty: not. Libcurl 7.88 signs the query as
  // it stands and names no hash of the body: the caller sorts the query and gives the header x-amz-content-sha256.
  std::string aws_scope{};
  std::string aws_key_id{};
  std::string aws_secret{};
};

// An answer of any code is one. Errors: kUnavailable naming the URL and why.
Result<HttpAnswer> http_call(const HttpCall& call);

struct UrlParts {
  std::string scheme;  // "http", "https"
  std::string host;    // lower case
  uint16_t port = 0;
};
// By the same rules as http_call() reads it. Errors: kInvalidArgument for another scheme, a user or a password in it,
// or what is no URL.
Result<UrlParts> parse_url(const std::string& url);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_NET_HTTP_CALL_H_
