// ServerAddress: the address and port of a server.
#ifndef FOLIOT_LOAD_CLIENT_SERVER_ADDRESS_H_
#define FOLIOT_LOAD_CLIENT_SERVER_ADDRESS_H_

#include <cstdint>
#include <string>

namespace foliot {

struct ServerAddress {
  std::string host;
  uint16_t port = 0;

  std::string to_string() const { return host + ":" + std::to_string(port); }
};

}  // namespace foliot

#endif  // FOLIOT_LOAD_CLIENT_SERVER_ADDRESS_H_
