#include "edge/grpc/grpc_acceptor.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

#include "edge/requests/listener.h"

namespace foliot {
namespace {

// After each connection, whether there was room for it or not.
constexpr std::chrono::microseconds kPause{200};
constexpr std::chrono::milliseconds kPauseWithoutDescriptors{kPauseWithoutDescriptorsMilliseconds};

// Of no other socket since the machine started. nullopt: it is no socket.
std::optional<uint64_t> cookie_of(int descriptor) {
  uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  if (getsockopt(descriptor, SOL_SOCKET, SO_COOKIE, &cookie, &size) != 0) return std::nullopt;
  return cookie;
}

uint16_t peer_port_of(int descriptor) {
  sockaddr_in6 peer{};  // the port of an IPv4 address is at the same place
  socklen_t size = sizeof peer;
  getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &size);
  return ntohs(peer.sin6_port);
}

}  // namespace

Result<uint16_t> GrpcAcceptor::listen(const std::string& address, uint16_t port) {
  boost::asio::io_context context;
  boost::asio::ip::tcp::acceptor acceptor(context);
  FOLIOT_RETURN_IF_ERROR(listen_at(acceptor, address, port, "--grpc-port"));
  const uint16_t bound = acceptor.local_endpoint().port();
  listener_ = acceptor.release();
  return bound;
}

void GrpcAcceptor::start(std::unique_ptr<Server> server) {
  server_ = std::move(server);
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "foliot-accept");
    run();
  });
}

void GrpcAcceptor::stop() {
  stopping_ = true;
  if (thread_.joinable()) {
    shutdown(listener_, SHUT_RDWR);  // ends a wait for connections
    thread_.join();
  }
  if (listener_ >= 0) close(std::exchange(listener_, -1));
}

void GrpcAcceptor::run() {
  while (true) {
    const int descriptor = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor >= 0) take(descriptor);
    const int error = descriptor < 0 ? errno : 0;
    if (stopping_) return;
    if (descriptor < 0) ++failures_;
    if (SpareDescriptor::is_missing(error)) find_descriptor();
    std::this_thread::sleep_for(descriptor >= 0 ? kPause : kPauseWithoutDescriptors);
  }
}

// gRPC closes the connection that is evicted. Without one, those that wait are closed: gRPC's clients try again.
void GrpcAcceptor::find_descriptor() {
  bool evicted = false;
  if (evictions_.due(options_.now())) find_idle();
  spare_.lend([&] { evicted = evict_idle(); });
  if (evicted || !set_blocking(false)) return;
  spare_.refuse_waiting(listener_, [](int) {});
  set_blocking(true);
}

// Whether accept() waits.
bool GrpcAcceptor::set_blocking(bool blocks) {
  const int flags = fcntl(listener_, F_GETFL);
  return flags >= 0 && fcntl(listener_, F_SETFL, blocks ? flags & ~O_NONBLOCK : flags | O_NONBLOCK) == 0;
}

void GrpcAcceptor::take(int descriptor) {
  if (!make_room()) {
    close(descriptor);
    return;
  }
  const int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  given_[descriptor] = cookie_of(descriptor).value_or(0);
  Server::NewConnectionParameters connection;
  connection.listener_fd = listener_;
  connection.fd = descriptor;
  server_->HandleNewConnection(&connection);
}

bool GrpcAcceptor::make_room() {
  if (given_.size() < options_.connections_max) return true;
  if (evictions_.due(options_.now())) find_idle();
  if (given_.size() < options_.connections_max) return true;
  return evict_idle();
}

bool GrpcAcceptor::evict_idle() {
  return evictions_.evict([this](int descriptor) { return end_if_idle(descriptor); });
}

void GrpcAcceptor::find_idle() {
  std::erase_if(given_, [](const auto& each) { return cookie_of(each.first) != each.second; });
  std::vector<std::pair<Duration, int>> idle;  // for how long, which
  for (const auto& [descriptor, cookie] : given_) {
    const Duration idleness = idleness_of(descriptor);
    if (idleness >= options_.idle_before_eviction) idle.emplace_back(idleness, descriptor);
  }
  if (idle.empty()) return evictions_.set_candidates({});
  const std::unordered_map<uint16_t, Turn> calling = options_.calling_ports();
  const TimePoint now = options_.now();
  std::vector<IdleEvictions<int>::Idle> candidates;
  for (const auto& [idleness, descriptor] : idle) {
    const auto call = calling.find(peer_port_of(descriptor));
    const bool silent_stream =
        call != calling.end() && call->second == Turn::kTheirs && idleness >= options_.idle_timeout;
    if (call == calling.end() || silent_stream) candidates.emplace_back(now - idleness, descriptor);
  }
  evictions_.set_candidates(std::move(candidates));
}

// A client that sends a large message receives flow-control updates meanwhile. One that
// sends a byte now and then does not.
Duration GrpcAcceptor::idleness_of(int descriptor) const {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return Duration();
  const auto received = Duration::milliseconds(info.tcpi_last_data_recv);
  const auto sent = Duration::milliseconds(info.tcpi_last_data_sent);
  return sent >= options_.request_timeout ? sent : std::min(received, sent);
}

// A connection that is still as idle has begun and ended no call since the look. gRPC
// finds the connection ended, and closes it. What this holds meanwhile stays the same
// connection, whatever gRPC does: the number alone could be another's from one moment
// to the next.
bool GrpcAcceptor::end_if_idle(int descriptor) {
  const int held = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (held < 0) return false;
  const bool idle = cookie_of(held) == given_.at(descriptor) && idleness_of(held) >= options_.idle_before_eviction;
  if (idle) shutdown(held, SHUT_RDWR);
  close(held);
  if (idle) given_.erase(descriptor);
  return idle;
}

}  // namespace foliot
