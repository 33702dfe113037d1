// StampedSocket: a client's TCP socket that knows when the kernel received the bytes
// that it read. A thread that was delayed, or is busy with others, reads late; a
// request's deadline counts from its arrival.
//
// The kernel stamps with the wall clock: a step of it while bytes wait to be read makes
// them appear older by the step, or new. So no age is more than kAgeMax, and once bytes
// are read their age is counted by the monotonic clock.
//
// Threading: its server's I/O thread.
#ifndef FOLIOT_EDGE_HTTP_STAMPED_SOCKET_H_
#define FOLIOT_EDGE_HTTP_STAMPED_SOCKET_H_

// clang-format off: Asio uses std::exchange and does not include it.
#include <utility>
// clang-format on
#include <boost/asio.hpp>
#include <cstddef>

#include "foundation/base/time.h"

namespace foliot {

class StampedSocket {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  using executor_type = Socket::executor_type;
  using lowest_layer_type = Socket::lowest_layer_type;

  // Accepted sockets inherit it, so that what came before they are accepted is stamped, too.
  static void enable_stamps(boost::asio::ip::tcp::acceptor& acceptor);

  // REQUIRES: its acceptor was enabled, and it does not block.
  explicit StampedSocket(Socket socket) : socket_(std::move(socket)) {}

  // Far longer than a thread is held up unless its process is stopped, and than most
  // clients wait: what is older is refused all the same, unless its deadline is longer.
  static constexpr Duration kAgeMax = Duration::seconds(10);

  // The age of what was read last; at most kAgeMax. For a request that came together
  // with an earlier one of its connection, that includes the time the earlier one took.
  Duration age() const { return age_at(since_boot()); }
  // Likewise, at an instant of the monotonic clock.
  Duration age_at(Duration since_boot) const;
  // How long bytes have waited that were stamped then, by the wall clock; from 0 to kAgeMax.
  static Duration waited(Duration stamp, Duration now);

  Socket& socket() { return socket_; }
  const Socket& socket() const { return socket_; }
  lowest_layer_type& lowest_layer() { return socket_.lowest_layer(); }
  executor_type get_executor() { return socket_.get_executor(); }

  // Reads into the first of the buffers. Nothing is read at once, without waiting: TLS
  // asks for that when it has all it needs.
  template <typename Buffers, typename Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    if (boost::asio::buffer_size(buffers) == 0) return socket_.async_read_some(buffers, std::forward<Handler>(handler));
    await(*boost::asio::buffer_sequence_begin(buffers), std::forward<Handler>(handler));
  }
  template <typename Buffers, typename Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    socket_.async_write_some(buffers, std::forward<Handler>(handler));
  }

 private:
  template <typename Handler>
  void await(boost::asio::mutable_buffer to, Handler&& handler) {
    socket_.async_wait(Socket::wait_read,
                       [this, to, handler = std::forward<Handler>(handler)](boost::system::error_code error) mutable {
                         const size_t bytes = error ? 0 : receive(to, error);
                         if (error == boost::asio::error::would_block) return await(to, std::move(handler));
                         handler(error, bytes);
                       });
  }
  size_t receive(boost::asio::mutable_buffer to, boost::system::error_code& error);

  static Duration since_boot();

  Socket socket_;
  Duration received_at_;  // by the monotonic clock
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_HTTP_STAMPED_SOCKET_H_
