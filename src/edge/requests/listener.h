// A socket that listens.
#ifndef FOLIOT_EDGE_REQUESTS_LISTENER_H_
#define FOLIOT_EDGE_REQUESTS_LISTENER_H_

// clang-format off: Asio uses std::exchange and does not include it.
#include <utility>
// clang-format on
#include <boost/asio.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "foundation/base/status.h"

namespace foliot {

// Opens `acceptor` at an IP address and a port (0: any free one). `port_flag` is named
// in errors: kAlreadyExists if the port is in use, kInvalidArgument for an address that
// is none or not this machine's, or a port that may not be had.
Status listen_at(boost::asio::ip::tcp::acceptor& acceptor, const std::string& address, uint16_t port,
                 std::string_view port_flag);

}  // namespace foliot

#endif  // FOLIOT_EDGE_REQUESTS_LISTENER_H_
