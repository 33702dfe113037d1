#include "foundation/process/fork_server.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <span>

#include "foundation/base/error_text.h"

namespace foliot {
namespace {

// What a job brings, in this order. The last may be missing.
enum JobDescriptor : uint8_t { kInput, kSaid, kComplained, kEnd, kOutput, kJobDescriptors };

Status gone() { return Status::unavailable("the process that starts others is gone"); }

// ---- Descriptors as a message of their own

// One byte, and room for what accompanies it.
struct DescriptorMessage {
  DescriptorMessage() {
    header.msg_iov = &content;
    header.msg_iovlen = 1;
    header.msg_control = ancillary.data();
    header.msg_controllen = ancillary.size();
  }
  DescriptorMessage(const DescriptorMessage&) = delete;
  DescriptorMessage& operator=(const DescriptorMessage&) = delete;

  char nothing = 0;
  iovec content{&nothing, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kJobDescriptors * sizeof(int))> ancillary{};
  msghdr header{};
};

bool send_descriptors(const Descriptor& to, std::span<const int> descriptors) {
  DescriptorMessage message;
  message.header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
  cmsghdr* rights = CMSG_FIRSTHDR(&message.header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  return ::sendmsg(to.number(), &message.header, MSG_NOSIGNAL) == 1;
}

// None when the other side is gone.
std::vector<Descriptor> receive_descriptors(int from) {
  DescriptorMessage message;
  if (::recvmsg(from, &message.header, MSG_CMSG_CLOEXEC) <= 0) return {};
  const cmsghdr* rights = CMSG_FIRSTHDR(&message.header);
  if (rights == nullptr || rights->cmsg_type != SCM_RIGHTS) return {};
  std::array<int, kJobDescriptors> numbers{};
  const size_t bytes = rights->cmsg_len - CMSG_LEN(0);
  std::memcpy(numbers.data(), CMSG_DATA(rights), bytes);
  std::vector<Descriptor> received;
  for (size_t i = 0; i < bytes / sizeof(int); ++i) received.emplace_back(numbers[i]);
  return received;
}

// ---- The server's process

// Makes the job's descriptors the copy's own, and closes all others.
void take_over(std::vector<Descriptor> job) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::dup2(job[kInput].number(), STDIN_FILENO);
  ::dup2(job[kSaid].number(), STDOUT_FILENO);
  ::dup2(job[kComplained].number(), STDERR_FILENO);
  const bool has_output = job.size() > kOutput;
  if (has_output) ::dup2(job[kOutput].number(), kChildOutputFile);
  ::closefrom(has_output ? kChildOutputFile + 1 : kChildOutputFile);
  for (Descriptor& closed : job) closed.release();
}

void send_status(const Descriptor& end, int number) { ::send(end.number(), &number, sizeof(number), MSG_NOSIGNAL); }

// Reports how the child ended. The child stays a zombie until the client has closed its
// end: otherwise its number could name another process, which would be killed in its
// place.
void report_end(pid_t child, const Descriptor& end) {
  siginfo_t how{};
  while (::waitid(P_PID, static_cast<id_t>(child), &how, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  send_status(end, how.si_code == CLD_EXITED ? W_EXITCODE(how.si_status, 0) : W_EXITCODE(0, how.si_status));
  char nothing = 0;
  while (::recv(end.number(), &nothing, 1, 0) > 0) {
  }
  ::waitpid(child, nullptr, 0);
}

}  // namespace

void serve_forks() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  while (true) {
    std::vector<Descriptor> job = receive_descriptors(kChildOutputFile);
    if (job.size() <= kEnd) ::_exit(0);
    const pid_t child = ::fork();
    if (child == 0) return take_over(std::move(job));
    const Descriptor end = std::move(job[kEnd]);
    job.clear();
    send_status(end, child < 0 ? -errno : child);
    if (child > 0) report_end(child, end);
  }
}

// ---- The client's side

Result<ForkServer> ForkServer::start(const std::vector<std::string>& command,
                                     const std::vector<std::string>& environment) {
  FOLIOT_ASSIGN_OR_RETURN(SocketPair control, make_socket_pair());
  FOLIOT_ASSIGN_OR_RETURN(
      ChildProcess process,
      ChildProcess::start({.command = command, .environment = environment, .output_file = control.theirs.number()}));
  return ForkServer(std::move(process), std::move(control.ours));
}

Result<ChildProcess> ForkServer::fork(const std::string& input, int output_file) {
  FOLIOT_ASSIGN_OR_RETURN(ChildStreams streams, make_child_streams(input));
  FOLIOT_ASSIGN_OR_RETURN(SocketPair end, make_socket_pair());
  const std::array<int, kJobDescriptors> job{streams.input.number(), streams.said.to.number(),
                                             streams.complained.to.number(), end.theirs.number(), output_file};
  const bool sent = send_descriptors(control_, std::span(job).first(output_file < 0 ? kOutput : kJobDescriptors));
  end.theirs.close();
  int child = 0;
  if (!sent || ::recv(end.ours.number(), &child, sizeof(child), 0) != sizeof(child)) return gone();
  if (child < 0) return Status::resource_exhausted(fmt::format("cannot start a process: {}", error_text(-child)));
  return ChildProcess(child, ChildProcess::Parent::kForkServer, std::move(streams), std::move(end.ours));
}

}  // namespace foliot
