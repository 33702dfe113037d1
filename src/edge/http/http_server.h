// HttpServer: HTTP/1.1 for one handler, with TLS or without. Knows connections, limits
// and compression, and nothing of the handler's protocol.
//
// One I/O thread reads, calls the handler and writes. What takes long is done on a thread of its own, one piece at a
// time, those of the source that took least time first (decode_queue.h): bodies that are compressed, or long to parse,
// and answers that are long to write as text. Large memory is freed by another (foundation/platform/release_thread.h).
// Each connection has one request at a time; pipelined ones wait in the socket.
//
// The answer to HEAD is sent without its body.
//
// Limits: 413 (body, inflated or not) and 431 (header); 408 for a request that is not
// whole in time; 503 where the bodies of all requests would exceed their memory, or the answers that clients do not
// read (edge/requests/answer_budget.h). A client has to take its answer at FrontendTimeouts::answer_bytes_per_second at
// least. A connection between requests is closed after the idle timeout. At the limit of
// connections a new one evicts the one that has been idle longest, if for some seconds,
// and is closed at once with a 503 otherwise.
#ifndef FOLIOT_EDGE_HTTP_HTTP_SERVER_H_
#define FOLIOT_EDGE_HTTP_HTTP_SERVER_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foundation/access/tls.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

struct HttpResponse {
  unsigned status = 200;
  std::string_view content_type = "application/json";
  std::vector<std::pair<std::string_view, std::string>> headers;
  // Written one after the other, without being copied together.
  std::vector<std::string> body;
};

// What HttpHandler::decode() made of a body.
class HttpDecoded {
 public:
  virtual ~HttpDecoded() = default;
  // Kept beside the body.
  virtual uint64_t bytes() const = 0;
};

// What a handler keeps while its answer is not ready; destroyed when the
// response is written, or by respond() if the client is gone.
class HttpPending {
 public:
  virtual ~HttpPending() = default;
  // The client went away; that it closed only its own side does not say so. The handler still has to respond, some
  // time.
  virtual void on_client_gone() = 0;
};

// One request and its response. Valid until respond() returns.
class HttpExchange {
 public:
  virtual std::string_view method() const = 0;
  // Path and query, also where the client sent the whole URL.
  virtual std::string_view target() const = 0;
  // Empty if it was not sent.
  virtual std::string_view header(std::string_view name) const = 0;
  // The client's address and port, for the log.
  virtual std::string peer() const = 0;
  // Inflated. The bytes stay where they are until the response is written, and longer while they are shared.
  virtual std::string& body() = 0;
  // The thread that drops the last share, whichever it is, frees no large memory. `beside`: what was made of the body.
  virtual std::shared_ptr<const void> share_body(std::vector<std::string> beside) = 0;
  // nullptr: the body was short, and has not been decoded.
  virtual std::shared_ptr<HttpDecoded> take_decoded() = 0;
  // When the last bytes of the request's header came, however much later they were read;
  // of a request that came together with the one before it, the same.
  virtual TimePoint arrival() const = 0;

  // Exactly once, on the I/O thread: from within handle() or later. With later,
  // `pending` is given first.
  virtual void respond(HttpResponse response) = 0;
  virtual void keep(std::unique_ptr<HttpPending> pending) = 0;
  // The response will have so many bytes: what to respond if there is no room for it beside those that its source has
  // not taken, or that it expects; nothing if there is, and it is counted until the response is written.
  virtual std::optional<HttpResponse> expect_answer(uint64_t bytes) = 0;
  // For what takes longer than a millisecond: calls `work` on the thread for that, and afterwards `then` on the I/O
  // thread, unless the server has been stopped. Meanwhile the exchange is not used otherwise.
  virtual void run_aside(std::function<void()> work, std::function<void()> then) = 0;

 protected:
  ~HttpExchange() = default;
};

class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  virtual void handle(HttpExchange& exchange) = 0;
  // How much of the body decode() parses; 0: it need not be called.
  virtual uint64_t parsed_bytes(HttpExchange& /*exchange*/) const { return 0; }
  // On the decoding thread. The exchange can be read, and its body may be given more capacity.
  virtual std::unique_ptr<HttpDecoded> decode(HttpExchange& /*exchange*/) const { return nullptr; }
  // For whom it is, by which work and memory are shared: a key, or the client's address.
  virtual std::string source(const HttpExchange& exchange) const {
    const std::string peer = exchange.peer();
    return peer.substr(0, peer.rfind(':'));
  }
  // The header has been read and the body has not: an answer here spares it, and
  // ends the connection.
  virtual std::optional<HttpResponse> on_header(const HttpExchange& /*exchange*/) { return std::nullopt; }
  // The largest body, inflated or not, that is read for this request, below HttpServerOptions::body_bytes_max.
  virtual uint64_t body_bytes_max(const HttpExchange& /*exchange*/) const {
    return std::numeric_limits<uint64_t>::max();
  }
};

struct HttpServerOptions {
  std::string thread_name;  // at most 15 characters
  std::string address;
  uint16_t port = 0;      // 0: any free one
  std::string port_flag;  // named in errors, "--http-port"
  uint64_t body_bytes_max = 0;
  uint64_t bodies_bytes_max = 0;  // of all requests that are being read or answered
  uint32_t header_bytes_max = 0;
  uint32_t connections_max = 0;
  Duration idle_timeout;     // between requests; and to take an answer
  Duration request_timeout;  // from a request's first byte to its last, to the second
  std::optional<TlsIdentity> tls;
};

class HttpServer {
 public:
  // `handler` outlives the server.
  HttpServer(HttpServerOptions options, HttpHandler& handler, std::function<TimePoint()> now);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Errors: kAlreadyExists if the port is in use, kInvalidArgument for an
  // address that is not this machine's or a TLS identity that cannot be used.
  Status start();
  // Closes every connection and joins the thread.
  void stop();
  uint16_t port() const;
  // For connections from now on. REQUIRES: options.tls. Any thread. Errors:
  // kInvalidArgument, and those before are kept.
  Status use_tls(const TlsIdentity& identity);
  // Runs `task` on the I/O thread. Any thread.
  void post(std::function<void()> task);

 private:
  class Session;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_HTTP_HTTP_SERVER_H_
