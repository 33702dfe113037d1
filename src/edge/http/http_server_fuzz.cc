// libFuzzer target: anything that a client can send to the HTTP port, from the first
// byte of a connection to the last: Beast's parser, limits, paths, JSON, inference. The
// first byte of the input determines how much of the rest arrives on its own, ahead of
// the others.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "edge/frontend/test_server.h"
#include "foundation/base/check.h"

namespace foliot {
namespace {

FrontendOptions small_limits() {
  FrontendOptions options;
  options.body_bytes_max = 1 << 16;
  options.header_bytes_max = 1 << 12;
  return options;
}

// The timer of the fuzzer's own timeout interrupts system calls: an interrupted
// connection attempt is repeated.
int connect_to(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  while (true) {
    const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    FOLIOT_CHECK(client >= 0);
    if (connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return client;
    FOLIOT_CHECK(errno == EINTR);
    close(client);
  }
}

// The server may have closed before it read all.
void send_all(int client, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) return;
    bytes = bytes.subspan(static_cast<size_t>(sent));
  }
}

// For any input the connection comes to an end; if not, the fuzzer's timeout does.
void await_end(int client) {
  char answer[4096];
  ssize_t received = 1;
  while (received > 0 || (received < 0 && errno == EINTR)) received = recv(client, answer, sizeof answer, 0);
  FOLIOT_CHECK(received == 0 || errno == ECONNRESET);
}

}  // namespace
}  // namespace foliot

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static foliot::TestServer server(foliot::small_limits());
  server.controller.forget();
  if (size == 0) return 0;
  const std::span<const uint8_t> bytes(data + 1, size - 1);
  const size_t ahead = std::min<size_t>(data[0], bytes.size());
  const int client = foliot::connect_to(server.frontend->http_port());
  foliot::send_all(client, bytes.first(ahead));
  foliot::send_all(client, bytes.subspan(ahead));
  shutdown(client, SHUT_WR);
  foliot::await_end(client);
  close(client);
  return 0;
}
