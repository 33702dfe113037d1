#include "foundation/net/redis_address.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace foliot {
namespace {

constexpr std::string_view kScheme = "redis://";
constexpr std::string_view kTlsScheme = "rediss://";
constexpr std::string_view kSocketScheme = "unix:";

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

bool RedisAddress::is_one(std::string_view text) {
  return text.find("://") != text.npos || text.starts_with(kSocketScheme);
}

Result<RedisAddress> RedisAddress::parse(const std::string& text) {
  const auto invalid = [&](std::string_view why) {
    return Status::invalid_argument(
        fmt::format("'{}': {}; it must be redis://HOST[:PORT][/DATABASE] or unix:PATH", text, why));
  };
  RedisAddress address;
  std::string_view rest = text;
  if (rest.starts_with(kSocketScheme)) {
    address.host.clear();
    address.socket = rest.substr(kSocketScheme.size());
    if (address.socket.empty()) return invalid("there is no path");
    return address;
  }
  if (rest.starts_with(kTlsScheme)) {
    return invalid("Redis over TLS is not supported, put a tunnel such as stunnel on this machine and name its port");
  }
  if (!rest.starts_with(kScheme)) return invalid("is no address of Redis");
  rest.remove_prefix(kScheme.size());
  if (rest.find('@') != rest.npos) return invalid("a password would be seen by all; set FOLIOT_REDIS_PASSWORD");
  if (const size_t slash = rest.find('/'); slash != rest.npos) {
    const std::optional<uint64_t> database = parse_number(rest.substr(slash + 1));
    if (!database || *database > 65535) return invalid("its database must be a number from 0 to 65535");
    address.database = static_cast<uint32_t>(*database);
    rest = rest.substr(0, slash);
  }
  // The colons of an IPv6 address stand in brackets.
  const size_t colon = rest.rfind(':');
  if (colon != rest.npos && rest.find(']', colon) == rest.npos) {
    const std::optional<uint64_t> port = parse_number(rest.substr(colon + 1));
    if (!port || *port == 0 || *port > 65535) return invalid("its port must be a number from 1 to 65535");
    address.port = static_cast<uint16_t>(*port);
    rest = rest.substr(0, colon);
  }
  if (rest.starts_with('[') && rest.ends_with(']')) rest = rest.substr(1, rest.size() - 2);
  if (rest.empty()) return invalid("there is no host");
  address.host = rest;
  return address;
}

std::string RedisAddress::text() const {
  if (host.empty()) return fmt::format("{}{}", kSocketScheme, socket);
  const bool is_ipv6 = host.find(':') != host.npos;
  return fmt::format("{}{}{}{}:{}/{}", kScheme, is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "", port, database);
}

}  // namespace foliot
