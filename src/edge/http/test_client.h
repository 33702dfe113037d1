// A client of HTTP for tests, by Beast.
#ifndef FOLIOT_EDGE_HTTP_TEST_CLIENT_H_
#define FOLIOT_EDGE_HTTP_TEST_CLIENT_H_

#include <fmt/format.h>

// clang-format off: Asio uses std::exchange and does not include it.
#include <utility>
// clang-format on
#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace foliot {

// An answer, as it came.
struct Reply {
  unsigned status = 0;
  std::string body;
  boost::beast::http::fields headers;
  nlohmann::json parsed() const { return nlohmann::json::parse(body); }
  std::string header(const char* name) const { return std::string(headers[name]); }
};

// One connection. Each call waits until it is done, and throws if the connection fails.
class Client {
 public:
  explicit Client(uint16_t port) : socket_(context_) {
    socket_.connect({boost::asio::ip::make_address("127.0.0.1"), port});
  }
  void send(const std::string& bytes) { boost::asio::write(socket_, boost::asio::buffer(bytes)); }
  // `has_body`: false for the answer to HEAD.
  Reply read(bool has_body = true) {
    boost::beast::http::response_parser<boost::beast::http::string_body> parser;
    parser.skip(!has_body);
    parser.body_limit(64 << 20);
    boost::beast::http::read(socket_, buffer_, parser);
    return {.status = parser.get().result_int(), .body = parser.get().body(), .headers = parser.get().base()};
  }
  Reply ask(const std::string& method, const std::string& target, const std::string& body = "",
            const std::string& headers = "") {
    send(request(method, target, body, headers));
    return read();
  }
  static std::string request(const std::string& method, const std::string& target, const std::string& body,
                             const std::string& headers) {
    return fmt::format("{} {} HTTP/1.1\r\nHost: test\r\n{}Content-Length: {}\r\n\r\n{}", method, target, headers,
                       body.size(), body);
  }
  // Says that it sends nothing more, and still reads.
  void close_own_side() { socket_.shutdown(boost::asio::ip::tcp::socket::shutdown_send); }
  // True when the server ended the connection.
  bool ended() {
    char byte;
    boost::system::error_code error;
    socket_.read_some(boost::asio::buffer(&byte, 1), error);
    return error == boost::asio::error::eof || error == boost::asio::error::connection_reset;
  }
  void close() { socket_.close(); }
  // Without waiting for anything: the server sees a reset.
  void abort() {
    socket_.set_option(boost::asio::socket_base::linger(true, 0));
    socket_.close();
  }

 private:
  boost::asio::io_context context_;
  boost::asio::ip::tcp::socket socket_;
  boost::beast::flat_buffer buffer_;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_HTTP_TEST_CLIENT_H_
