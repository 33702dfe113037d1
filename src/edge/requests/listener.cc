#include "edge/requests/listener.h"

#include <fmt/format.h>

namespace foliot {

namespace net = boost::asio;
using boost::system::error_code;
using net::ip::tcp;

Status listen_at(tcp::acceptor& acceptor, const std::string& address, uint16_t port, std::string_view port_flag) {
  error_code error;
  const auto ip = net::ip::make_address(address, error);
  if (error)
    return Status::invalid_argument(
        fmt::format("'{}' is not an IP address; names are not looked up: give 127.0.0.1 for this machine alone, "
                    "0.0.0.0 for all, or one of its addresses",
                    address));
  const tcp::endpoint endpoint(ip, port);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(net::socket_base::max_listen_connections, error);
  if (error == net::error::address_in_use)
    return Status::already_exists(
        fmt::format("port {} of {} is in use; choose another with {}", port, address, port_flag));
  if (error)
    return Status::invalid_argument(fmt::format("cannot listen on port {} of {}: {}; choose another with {}", port,
                                                address, error.message(), port_flag));
  return Status::ok_status();
}

}  // namespace foliot
