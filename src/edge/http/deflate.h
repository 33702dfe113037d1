// Answers that are compressed, for clients that say in Accept-Encoding that they take it.
#ifndef FOLIOT_EDGE_HTTP_DEFLATE_H_
#define FOLIOT_EDGE_HTTP_DEFLATE_H_

#include <string_view>

#include "edge/http/http_server.h"

namespace foliot {

enum class ContentEncoding { kIdentity, kGzip, kDeflate };

// What `accept_encoding` prefers among these, by its q-values; gzip of equals. kIdentity where it
// names neither, or gives "identity" a higher q-value.
ContentEncoding preferred_encoding(std::string_view accept_encoding);

// Compresses the body and adds Content-Encoding, unless the body then would be no smaller. It takes about
// 10 ms per MiB on the calling thread.
void compress(HttpResponse& response, ContentEncoding encoding);

}  // namespace foliot

#endif  // FOLIOT_EDGE_HTTP_DEFLATE_H_
