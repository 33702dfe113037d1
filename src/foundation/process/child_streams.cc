#include "foundation/process/child_streams.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "foundation/base/error_text.h"

namespace foliot {
namespace {

Status failure(std::string_view what) {
  return Status::resource_exhausted(fmt::format("cannot {}: {}", what, error_text(errno)));
}

Result<Descriptor> file_of(const std::string& text) {
  Descriptor file(::memfd_create("foliot input", MFD_CLOEXEC));
  if (!file.is_open()) return failure("make the input of a child process");
  const ssize_t written = ::write(file.number(), text.data(), text.size());
  if (written != static_cast<ssize_t>(text.size()) || ::lseek(file.number(), 0, SEEK_SET) != 0) {
    return failure("write the input of a child process");
  }
  return file;
}

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return failure("make a pipe");
  Pipe pipe{Descriptor(ends[0]), Descriptor(ends[1])};
  ::fcntl(pipe.from.number(), F_SETFL, O_NONBLOCK);
  return pipe;
}

}  // namespace

Result<ChildStreams> make_child_streams(const std::string& input) {
  ChildStreams streams;
  FOLIOT_ASSIGN_OR_RETURN(streams.input, file_of(input));
  FOLIOT_ASSIGN_OR_RETURN(streams.said, make_pipe());
  FOLIOT_ASSIGN_OR_RETURN(streams.complained, make_pipe());
  return streams;
}

Result<SocketPair> make_socket_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return failure("make a socket");
  return SocketPair{Descriptor(ends[0]), Descriptor(ends[1])};
}

}  // namespace foliot
