// HttpStream: a client's socket, with TLS around it or without, as the one kind of
// stream that Beast and Asio need.
//
// Threading: its server's I/O thread.
#ifndef FOLIOT_EDGE_HTTP_HTTP_STREAM_H_
#define FOLIOT_EDGE_HTTP_HTTP_STREAM_H_

// clang-format off: Asio uses std::exchange and does not include it.
#include <utility>
// clang-format on
#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <optional>

#include "edge/http/stamped_socket.h"

namespace foliot {

class HttpStream {
 public:
  using Socket = StampedSocket::Socket;
  using TlsContext = boost::asio::ssl::context;
  using executor_type = Socket::executor_type;

  // `tls` null: plain; else it outlives this.
  HttpStream(Socket socket, TlsContext* tls) : socket_(std::move(socket)) {
    if (tls != nullptr) tls_.emplace(socket_, *tls);
  }

  bool is_tls() const { return tls_.has_value(); }
  Socket& socket() { return socket_.socket(); }
  const Socket& socket() const { return socket_.socket(); }
  // The age of what was read last.
  Duration age() const { return socket_.age(); }
  executor_type get_executor() { return socket_.get_executor(); }

  // REQUIRES: is_tls().
  template <typename Handler>
  void async_handshake(Handler&& handler) {
    tls_->async_handshake(boost::asio::ssl::stream_base::server, std::forward<Handler>(handler));
  }
  template <typename Buffers, typename Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    tls_ ? tls_->async_read_some(buffers, std::forward<Handler>(handler))
         : socket_.async_read_some(buffers, std::forward<Handler>(handler));
  }
  template <typename Buffers, typename Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    tls_ ? tls_->async_write_some(buffers, std::forward<Handler>(handler))
         : socket_.async_write_some(buffers, std::forward<Handler>(handler));
  }

 private:
  StampedSocket socket_;
  std::optional<boost::asio::ssl::stream<StampedSocket&>> tls_;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_HTTP_HTTP_STREAM_H_
