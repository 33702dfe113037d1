#include "frontend/stamped_socket.h"

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

Duration since_1970() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return duration_of(now);
}

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

Duration StampedSocket::age() const { return std::max(since_1970() - received_at_, Duration()); }

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
  received_at_ = stamp_of(message);
  return static_cast<size_t>(bytes);
}

}  // namespace foliot
