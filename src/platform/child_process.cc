#include "platform/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace foliot {
namespace {

constexpr int kOutputFile = 3;  // the child's first descriptor after the standard ones

Status failure(std::string_view what, int error) {
  const std::string message = fmt::format("cannot {}: {}", what, std::strerror(error));
  return error == ENOENT || error == EACCES ? Status::not_found(message) : Status::resource_exhausted(message);
}

// A file without a name that holds `text`, to be read from its beginning.
Result<Descriptor> file_of(const std::string& text) {
  Descriptor file(::memfd_create("foliot input", MFD_CLOEXEC));
  if (!file.is_open()) return failure("make the input of a child process", errno);
  const ssize_t written = ::write(file.number(), text.data(), text.size());
  if (written != static_cast<ssize_t>(text.size()) || ::lseek(file.number(), 0, SEEK_SET) != 0) {
    return failure("write the input of a child process", errno);
  }
  return file;
}

struct Pipe {
  Descriptor from;
  Descriptor to;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return failure("make a pipe", errno);
  Pipe pipe{Descriptor(ends[0]), Descriptor(ends[1])};
  ::fcntl(pipe.from.number(), F_SETFL, O_NONBLOCK);  // the parent's end only
  return pipe;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts)
    result.push_back(const_cast<char*>(text.c_str()));  // NOLINT: posix_spawn's type
  result.push_back(nullptr);
  return result;
}

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

Descriptor::~Descriptor() {
  if (is_open()) ::close(number_);
}

Result<ChildProcess> ChildProcess::start(const ChildOptions& options) {
  FOLIOT_ASSIGN_OR_RETURN(const Descriptor input, file_of(options.input));
  FOLIOT_ASSIGN_OR_RETURN(Pipe said, make_pipe());
  FOLIOT_ASSIGN_OR_RETURN(Pipe complained, make_pipe());
  FileActions files;
  files.give(input.number(), STDIN_FILENO);
  files.give(said.to.number(), STDOUT_FILENO);
  files.give(complained.to.number(), STDERR_FILENO);
  if (options.output_file >= 0) files.give(options.output_file, kOutputFile);
  files.close_from(options.output_file >= 0 ? kOutputFile + 1 : kOutputFile);
  const Attributes attributes;
  pid_t process = 0;
  const int error = ::posix_spawn(&process, options.command.front().c_str(), files.get(), attributes.get(),
                                  pointers(options.command).data(), pointers(options.environment).data());
  if (error != 0) return failure(fmt::format("run {}", options.command.front()), error);
  ChildProcess child(process);
  child.said_ = std::move(said.from);
  child.complained_ = std::move(complained.from);
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : process_(std::exchange(other.process_, 0)),
      said_(std::move(other.said_)),
      complained_(std::move(other.complained_)),
      status_(other.status_) {}

ChildProcess::~ChildProcess() {
  if (process_ == 0 || status_) return;
  kill();
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void ChildProcess::kill() {
  if (!status_) ::kill(process_, SIGKILL);
}

bool ChildProcess::has_ended() {
  int status = 0;
  if (!status_ && ::waitpid(process_, &status, WNOHANG) == process_) status_ = status;
  return status_.has_value();
}

// A child that has ended says nothing more, so its last words are read after its
// end is known.
bool ChildProcess::listen(Duration patience, std::string& said, std::string& complained) {
  std::array<pollfd, 2> sources{{{said_.number(), POLLIN, 0}, {complained_.number(), POLLIN, 0}}};
  if (!status_) ::poll(sources.data(), sources.size(), static_cast<int>(patience.to_milliseconds()));
  const bool ended = has_ended();
  if (said_.is_open() && !read_some(said_, said)) said_.close();
  if (complained_.is_open() && !read_some(complained_, complained)) complained_.close();
  return !ended;
}

int ChildProcess::signal() const { return WIFSIGNALED(*status_) ? WTERMSIG(*status_) : 0; }

std::string ChildProcess::ending() const {
  if (signal() != 0) return fmt::format("signal {} ({})", signal(), ::strsignal(signal()));
  return fmt::format("exit code {}", WEXITSTATUS(*status_));
}

}  // namespace foliot
