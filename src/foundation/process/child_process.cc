#include "foundation/process/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fstream>
#include <optional>

#include "foundation/base/error_text.h"
#include "foundation/process/namespaced_start.h"
#include "foundation/process/periodic_yield.h"

namespace foliot {
namespace {

Status failure(std::string_view what, int error) {
  const std::string message = fmt::format("cannot {}: {}", what, error_text(error));
  return error == ENOENT || error == EACCES ? Status::not_found(message) : Status::resource_exhausted(message);
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts)
    result.push_back(const_cast<char*>(text.c_str()));  // NOLINT: posix_spawn's type
  result.push_back(nullptr);
  return result;
}

Descriptor handle_of(pid_t process) { return Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, process, 0))); }

class Attributes {
 public:
  Attributes() {
    posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  }
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

class FileActions {
 public:
  FileActions() { posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  void give(int descriptor, int as) { posix_spawn_file_actions_adddup2(&actions_, descriptor, as); }
  void close_from(int descriptor) { posix_spawn_file_actions_addclosefrom_np(&actions_, descriptor); }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

// The status of a child that has ended, as waitpid gives it, once the rest of its group was killed: before its number
// can become that of another group. Nothing where it still runs and is not waited for.
std::optional<int> end_of_group(pid_t process, bool wait) {
  siginfo_t how{};
  const int options = WEXITED | WNOWAIT | (wait ? 0 : WNOHANG);
  while (::waitid(P_PID, static_cast<id_t>(process), &how, options) != 0 && errno == EINTR) {
  }
  if (how.si_pid != process) return std::nullopt;
  ::kill(-process, SIGKILL);
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// As end_of_group has it, of a child of the fork server, which is this process' own child.
std::optional<int> end_by_fork_server(const Descriptor& end, bool wait) {
  int status = 0;
  ssize_t received = 0;
  do received = ::recv(end.number(), &status, sizeof(status), wait ? 0 : MSG_DONTWAIT);
  while (received < 0 && errno == EINTR);
  // A fork server that is gone has taken its child with it.
  if (received == 0) return W_EXITCODE(0, SIGKILL);
  if (received < 0) return std::nullopt;
  return status;
}

// Appends what there is, at most a little more than a pipe holds. False at its end.
bool read_some(const Descriptor& from, std::string& to) {
  std::array<char, 4096> chunk;
  for (int i = 0; i < 32; ++i) {
    const ssize_t got = ::read(from.number(), chunk.data(), chunk.size());
    if (got < 0 && errno != EINTR) return errno == EAGAIN;
    if (got == 0) return false;
    if (got > 0) to.append(chunk.data(), static_cast<size_t>(got));
  }
  return true;
}

}  // namespace

Result<ChildProcess> ChildProcess::start(const ChildOptions& options) {
  FOLIOT_ASSIGN_OR_RETURN(ChildStreams streams, make_child_streams(options.input));
  if (options.namespaces) {
    const auto process = namespaced_start({.command = options.command,
                                           .environment = options.environment,
                                           .files = {streams.input.number(), streams.said.to.number(),
                                                     streams.complained.to.number(), options.output_file},
                                           .network = options.namespaces->network});
    if (process) return ChildProcess(*process, Parent::kUs, std::move(streams), handle_of(*process));
  }
  FileActions files;
  files.give(streams.input.number(), STDIN_FILENO);
  files.give(streams.said.to.number(), STDOUT_FILENO);
  files.give(streams.complained.to.number(), STDERR_FILENO);
  if (options.output_file >= 0) files.give(options.output_file, kChildOutputFile);
  files.close_from(options.output_file >= 0 ? kChildOutputFile + 1 : kChildOutputFile);
  const Attributes attributes;
  pid_t process = 0;
  const int error = ::posix_spawn(&process, options.command.front().c_str(), files.get(), attributes.get(),
                                  pointers(options.command).data(), pointers(options.environment).data());
  if (error != 0) return failure(fmt::format("run {}", options.command.front()), error);
  return ChildProcess(process, Parent::kUs, std::move(streams), handle_of(process));
}

ChildProcess::ChildProcess(pid_t process, Parent parent, ChildStreams streams, Descriptor end)
    : process_(process),
      parent_(parent),
      said_(std::move(streams.said.from)),
      complained_(std::move(streams.complained.from)),
      end_(std::move(end)) {}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : process_(std::exchange(other.process_, 0)),
      parent_(other.parent_),
      said_(std::move(other.said_)),
      complained_(std::move(other.complained_)),
      end_(std::move(other.end_)),
      status_(other.status_) {}

ChildProcess::~ChildProcess() {
  if (process_ == 0 || status_) return;
  kill();
  has_ended(true);
}

void ChildProcess::kill() {
  if (status_) return;
  if (parent_ == Parent::kUs) ::kill(-process_, SIGKILL);
  ::kill(process_, SIGKILL);
}

Result<Descriptor> ChildProcess::handle() const {
  Descriptor handle(::fcntl(end_.number(), F_DUPFD_CLOEXEC, 0));
  if (!handle.is_open()) return failure("keep a handle of a process", errno);
  return handle;
}

uint64_t ChildProcess::memory_bytes() const {
  if (status_) return 0;
  std::ifstream file(fmt::format("/proc/{}/statm", process_));
  uint64_t pages = 0, resident = 0;
  if (!(file >> pages >> resident)) return 0;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

Duration ChildProcess::cpu_time() const {
  clockid_t clock{};
  timespec used{};
  if (status_ || ::clock_getcpuclockid(process_, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return Duration();
  return Duration::seconds(used.tv_sec) + Duration::nanoseconds(used.tv_nsec);
}

Duration ChildProcess::queued_time() const {
  if (status_) return Duration();
  std::ifstream file(fmt::format("/proc/{}/schedstat", process_));
  int64_t running = 0, queued = 0;
  return file >> running >> queued ? Duration::nanoseconds(queued) : Duration();
}

bool ChildProcess::has_ended(bool wait) {
  if (status_) return true;
  status_ = parent_ == Parent::kUs ? end_of_group(process_, wait) : end_by_fork_server(end_, wait);
  if (status_) end_.close();
  return status_.has_value();
}

// Until there is something to read, at most for `timeout`.
void ChildProcess::wait(Duration timeout) const {
  std::array<pollfd, 3> polled{};
  std::ranges::transform(sources(), polled.begin(), [](int source) { return pollfd{source, POLLIN, 0}; });
  const timespec limit{.tv_sec = timeout.nanoseconds() / 1'000'000'000,
                       .tv_nsec = timeout.nanoseconds() % 1'000'000'000};
  sigset_t blocked;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  ::sigaddset(&blocked, kYieldSignal);
  ::ppoll(polled.data(), polled.size(), &limit, &blocked);
}

// A child that has ended writes nothing more, so the rest of its output is read after
// its end is known.
bool ChildProcess::listen(Duration timeout, std::string& said, std::string& complained) {
  if (!status_) wait(timeout);
  const bool ended = has_ended();
  if (said_.is_open() && !read_some(said_, said)) said_.close();
  if (complained_.is_open() && !read_some(complained_, complained)) complained_.close();
  return !ended;
}

int ChildProcess::signal() const { return WIFSIGNALED(*status_) ? WTERMSIG(*status_) : 0; }

std::string ChildProcess::ending() const {
  if (signal() == 0) return fmt::format("exit code {}", WEXITSTATUS(*status_));
  const char* meaning = ::sigdescr_np(signal());  // null: its meaning is the program's own
  return fmt::format("signal {} ({})", signal(), meaning == nullptr ? "a real-time signal" : meaning);
}

}  // namespace foliot
