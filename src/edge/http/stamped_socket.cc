#include "edge/http/stamped_socket.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace foliot {
namespace {

using boost::system::error_code;

Duration duration_of(const timespec& time) {
  return Duration::seconds(time.tv_sec) + Duration::nanoseconds(time.tv_nsec);
}

Duration read_clock(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return duration_of(now);
}

Duration since_1970() { return read_clock(CLOCK_REALTIME); }

// The kernel's stamp; now, if there is none.
Duration stamp_of(msghdr& message) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_TIMESTAMPNS) continue;
    timespec stamp{};
    std::memcpy(&stamp, CMSG_DATA(part), sizeof stamp);
    return duration_of(stamp);
  }
  return since_1970();
}

}  // namespace

void StampedSocket::enable_stamps(boost::asio::ip::tcp::acceptor& acceptor) {
  const int on = 1;
  setsockopt(acceptor.native_handle(), SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
}

Duration StampedSocket::since_boot() { return read_clock(CLOCK_MONOTONIC); }

Duration StampedSocket::waited(Duration stamp, Duration now) { return std::clamp(now - stamp, Duration(), kAgeMax); }

Duration StampedSocket::age_at(Duration since_boot) const {
  return std::clamp(since_boot - received_at_, Duration(), kAgeMax);
}

size_t StampedSocket::receive(boost::asio::mutable_buffer to, error_code& error) {
  iovec place{.iov_base = to.data(), .iov_len = to.size()};
  alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(timespec))];
  msghdr message{};
  message.msg_iov = &place;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t bytes = 0;
  do {
    bytes = recvmsg(socket_.native_handle(), &message, 0);
  } while (bytes < 0 && errno == EINTR);
  if (bytes < 0) {
    error.assign(errno, boost::asio::error::get_system_category());
    return 0;
  }
  if (bytes == 0) {
    error = boost::asio::error::eof;
    return 0;
  }
  received_at_ = since_boot() - waited(stamp_of(message), since_1970());
  return static_cast<size_t>(bytes);
}

}  // namespace foliot
