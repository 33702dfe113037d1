#include "foundation/process/namespaced_start.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

#include "foundation/process/sanitized.h"

namespace foliot {
namespace {

constexpr size_t kStackBytes = 64 << 10;

// What the new process needs, made before it shares the memory of this one.
struct Start {
  std::vector<char*> command;
  std::vector<char*> environment;
  std::array<int, 4> files{};
  bool new_user = false;
  bool failed = false;
  std::string users, groups;  // the maps of a new user namespace
};

std::vector<char*> program_words(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));  // NOLINT: execve's type
  result.push_back(nullptr);
  return result;
}

// ---- In the new process, in this one's memory: system calls only, and nothing that stays.

bool write_file(const char* path, std::string_view text) {
  const int file = ::open(path, O_WRONLY | O_CLOEXEC);
  const bool written = file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (file >= 0) ::close(file);
  return written;
}

// Handlers are this process's code.
void forget_signals() {
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action {};
    if (::sigaction(number, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = SIG_DFL;
    ::sigaction(number, &action, nullptr);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Over execve(), where the user is not root.
void keep_administration() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, 2> sets{};
  if (::syscall(SYS_capget, &header, sets.data()) != 0) return;
  sets[0].inheritable |= (1u << CAP_SYS_ADMIN) & sets[0].permitted;
  ::syscall(SYS_capset, &header, sets.data());
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0);
}

bool take_files(const std::array<int, 4>& files) {
  const int count = files.back() < 0 ? 3 : 4;
  for (int number = 0; number < count; ++number) {
    const int from = files[static_cast<size_t>(number)];
    if (from == number ? ::fcntl(from, F_SETFD, 0) != 0 : ::dup2(from, number) < 0) return false;
  }
  return ::syscall(SYS_close_range, count, ~0u, 0) == 0;
}

int become_program(void* argument) {
  Start& start = *static_cast<Start*>(argument);
  ::setpgid(0, 0);
  const bool mapped =
      !start.new_user || (write_file("/proc/self/setgroups", "deny") && write_file("/proc/self/uid_map", start.users) &&
                          write_file("/proc/self/gid_map", start.groups));
  keep_administration();
  if (mapped && take_files(start.files)) {
    forget_signals();
    ::execve(start.command.front(), start.command.data(), start.environment.data());
  }
  start.failed = true;
  ::_exit(127);
}

// ---- In this process

void reap(pid_t process) {
  while (::waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
  }
}

// The process, if its program runs.
std::optional<pid_t> start_with(Start& start, int flags) {
  start.new_user = (flags & CLONE_NEWUSER) != 0;
  start.failed = false;
  void* stack = ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) return std::nullopt;
  // No handler may run in the new process, which shares the memory.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const int sharing = CLONE_VM | CLONE_VFORK | SIGCHLD;
  const pid_t process = ::clone(&become_program, static_cast<char*>(stack) + kStackBytes, flags | sharing, &start);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::munmap(stack, kStackBytes);
  if (process < 0) return std::nullopt;
  if (!start.failed) return process;
  reap(process);
  return std::nullopt;
}

}  // namespace

std::optional<pid_t> namespaced_start(const NamespacedProgram& program) {
  if (kSanitized) return std::nullopt;  // it would see the new process's calls as this one's
  Start start{.command = program_words(program.command),
              .environment = program_words(program.environment),
              .files = program.files,
              .users = fmt::format("{0} {0} 1", ::geteuid()),
              .groups = fmt::format("{0} {0} 1", ::getegid())};
  const int kinds = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | (program.network ? 0 : CLONE_NEWNET);
  if (const auto process = start_with(start, kinds)) return process;
  return start_with(start, kinds | CLONE_NEWUSER);
}

}  // namespace foliot
