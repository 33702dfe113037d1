// HttpConnection: HTTP calls one after the other, by libcurl, over a connection that is kept between them. Each is made
// as http_call() makes one.
//
// Threading: one at a time; a call blocks for at most its timeout.
#ifndef FOLIOT_FOUNDATION_NET_HTTP_CONNECTION_H_
#define FOLIOT_FOUNDATION_NET_HTTP_CONNECTION_H_

#include "foundation/base/status.h"
#include "foundation/net/http_call.h"

namespace foliot {

class HttpConnection {
 public:
  HttpConnection();
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  // As http_call().
  Result<HttpAnswer> call(const HttpCall& call);

 private:
  void* const curl_;  // libcurl's easy handle; null: it could not be made
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_NET_HTTP_CONNECTION_H_
