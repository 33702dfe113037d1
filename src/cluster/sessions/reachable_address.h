// Addresses as peers reach them.
#ifndef FOLIOT_CLUSTER_SESSIONS_REACHABLE_ADDRESS_H_
#define FOLIOT_CLUSTER_SESSIONS_REACHABLE_ADDRESS_H_

#include <string>

namespace foliot {

// "0.0.0.0:8200" as peers that see this side at `host` reach it.
inline std::string reachable(const std::string& address, const std::string& host) {
  const size_t colon = address.rfind(':');
  const std::string listens = address.substr(0, colon);
  if (listens != "0.0.0.0" && listens != "[::]") return address;
  const bool needs_brackets = host.find(':') != std::string::npos;
  return (needs_brackets ? "[" + host + "]" : host) + address.substr(colon);
}

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_SESSIONS_REACHABLE_ADDRESS_H_
