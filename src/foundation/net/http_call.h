// http_call(): one HTTP call by libcurl, of HTTP or HTTPS alone: without redirects, proxies, cookies, or credentials of
// the machine's user.
//
// Threading: any; blocks for at most the timeout.
#ifndef FOLIOT_FOUNDATION_NET_HTTP_CALL_H_
#define FOLIOT_FOUNDATION_NET_HTTP_CALL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

struct HttpCall {
  std::string method = "GET";
  std::string url;
  std::vector<std::string> headers{};  // "NAME: VALUE"
  std::string body{};                  // of a method that has one
  std::string ca_file{};               // PEM, of what signs the server's certificate; empty: the machine's
  bool any_certificate = false;        // the server's is not checked; for questions to this machine alone
  Duration timeout = Duration::seconds(10);
  size_t answer_bytes_max = 64 << 10;
};

struct HttpAnswer {
  long code = 0;
  std::string body;
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
