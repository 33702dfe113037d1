#include "process/confinement.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <optional>

#include "base/error_text.h"
#include "process/background.h"
#include "process/landlock.h"
#include "process/system_call_filter.h"

namespace foliot {
namespace {

// Of asm/prctl.h: ARCH_SET_FS, with which the C library begins.
constexpr uint64_t kSetThreadArea = 0x1002;
constexpr rlim_t kOpenFilesMax = 64;
constexpr rlim_t kOpenFilesOfProgramMax = 1024;

// Sanitizers reserve terabytes of addresses and make system calls of their own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

std::string because(std::string_view what, int error) { return fmt::format("{}: {}", what, error_text(error)); }

// A tighter limit stays: without a privilege (CAP_SYS_RESOURCE) it cannot be raised.
// `grace`: how far it is from the limit's warning, a signal, to its hard end.
Status limit(int resource, rlim_t value, rlim_t grace = 0) {
  const auto which = static_cast<__rlimit_resource_t>(resource);
  rlimit before{};
  if (::getrlimit(which, &before) == 0) {
    const rlim_t hard = std::min(value + grace, before.rlim_max);
    const rlimit wanted{std::min({value, before.rlim_cur, hard}), hard};
    if (::setrlimit(which, &wanted) == 0) return {};
  }
  return Status::internal(because("cannot limit resources", errno));
}

Status limit_resources(const Confinement& confinement) {
  FOLIOT_RETURN_IF_ERROR(limit(RLIMIT_CORE, 0));
  FOLIOT_RETURN_IF_ERROR(limit(RLIMIT_NOFILE, kOpenFilesMax));
  if (confinement.memory_bytes > 0 && !kSanitized) {
    FOLIOT_RETURN_IF_ERROR(limit(RLIMIT_AS, confinement.memory_bytes));
  }
  if (confinement.file_bytes > 0) FOLIOT_RETURN_IF_ERROR(limit(RLIMIT_FSIZE, confinement.file_bytes));
  if (confinement.cpu_time > Duration()) {
    FOLIOT_RETURN_IF_ERROR(limit(RLIMIT_CPU, static_cast<rlim_t>(confinement.cpu_time.to_seconds()) + 1, 1));
  }
  return {};
}

// Lets all other processes go first: with CPU, disk, and memory when the machine has
// none left.
void step_back(bool background) {
  std::ofstream("/proc/self/oom_score_adj") << 1000;
  if (background) go_to_background();
}

// True if files are restricted, false if this kernel cannot.
Result<bool> restrict_files(const std::vector<std::filesystem::path>& readable) {
  std::optional<Landlock> landlock = Landlock::create();
  if (!landlock) return false;
  for (const std::filesystem::path& path : readable) {
    FOLIOT_RETURN_IF_ERROR(landlock->allow(path, Landlock::Access::kRead));
  }
  return landlock->enforce();
}

// Root keeps the right to read any file only where Landlock says which.
std::optional<std::string> drop_privileges(bool files_restricted) {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, 2> have{};
  if (::syscall(SYS_capget, &header, have.data()) != 0) return because("privileges not dropped", errno);
  const uint32_t kept = files_restricted ? (1u << CAP_DAC_READ_SEARCH) & have[0].permitted : 0;
  std::array<__user_cap_data_struct, 2> wanted{};
  wanted[0].effective = wanted[0].permitted = kept;
  if (::syscall(SYS_capset, &header, wanted.data()) != 0) return because("privileges not dropped", errno);
  return std::nullopt;
}

// Files are opened to be read, unless it is limited elsewhere which are written.
void allow_opening(SystemCallFilter& filter, bool for_writing) {
  constexpr uint64_t kWriting = O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY);
  const uint64_t refused = for_writing ? 0 : kWriting;
  filter.allow("open", {{.argument = 1, .mask = refused, .value = O_RDONLY}});
  filter.allow("openat", {{.argument = 2, .mask = refused, .value = O_RDONLY}});
}

// The kernels that are generated need executable memory.
std::optional<std::string> restrict_system_calls() {
  if (kSanitized) return "no filter of system calls under a sanitizer";
  SystemCallFilter filter;
  filter.allow(computing_system_calls());
  filter.allow("memfd_create");
  allow_threads(filter);
  allow_self_control(filter);
  allow_opening(filter, false);
  return filter.load();
}

// ---- Of a process that executes another program

Status limit_resources(const ProgramConfinement& confinement) {
  FOLIOT_RETURN_IF_ERROR(limit(RLIMIT_CORE, 0));
  FOLIOT_RETURN_IF_ERROR(limit(RLIMIT_NOFILE, kOpenFilesOfProgramMax));
  if (confinement.memory_bytes > 0 && !kSanitized) {
    FOLIOT_RETURN_IF_ERROR(limit(RLIMIT_DATA, confinement.memory_bytes));
  }
  if (confinement.file_bytes > 0) FOLIOT_RETURN_IF_ERROR(limit(RLIMIT_FSIZE, confinement.file_bytes));
  return {};
}

// True if files are restricted, false if this kernel cannot.
Result<bool> restrict_files(const ProgramConfinement& confinement) {
  std::optional<Landlock> landlock = Landlock::create(confinement.network);
  if (!landlock) return false;
  const auto allow = [&](const std::vector<std::filesystem::path>& paths, Landlock::Access access) -> Status {
    for (const std::filesystem::path& path : paths) FOLIOT_RETURN_IF_ERROR(landlock->allow(path, access));
    return {};
  };
  FOLIOT_RETURN_IF_ERROR(allow(confinement.readable, Landlock::Access::kRead));
  FOLIOT_RETURN_IF_ERROR(allow(confinement.executable, Landlock::Access::kExecute));
  FOLIOT_RETURN_IF_ERROR(allow(confinement.changeable, Landlock::Access::kChange));
  FOLIOT_RETURN_IF_ERROR(allow(confinement.devices, Landlock::Access::kReadWrite));
  FOLIOT_RETURN_IF_ERROR(allow(confinement.controlled, Landlock::Access::kControl));
  return landlock->enforce();
}

// What interpreters and their libraries make, besides. Where they are refused, a library
// does without, or fails: nothing here reaches another process, or memory that no limit
// counts (memfd_create, shmget).
constexpr std::array kOfPrograms{
    "access",
    "alarm",
    "chdir",
    "chmod",
    "copy_file_range",
    "dup2",
    "dup3",
    "epoll_create",
    "epoll_create1",
    "epoll_ctl",
    "epoll_pwait",
    "epoll_wait",
    "eventfd2",
    "execve",
    "faccessat",
    "faccessat2",
    "fallocate",
    "fchdir",
    "fchmodat",
    "fgetxattr",
    "flistxattr",
    "flock",
    "fstatfs",
    "get_mempolicy",
    "get_robust_list",
    "getgroups",
    "getitimer",
    "getpgid",
    "getpgrp",
    "getresgid",
    "getresuid",
    "getsid",
    "getsockname",
    "getsockopt",
    "getpeername",
    "getxattr",
    "lgetxattr",
    "listxattr",
    "llistxattr",
    "mbind",
    "membarrier",
    "mincore",
    "mkdir",
    "mkdirat",
    "mlock",
    "mlock2",
    "msync",
    "munlock",
    "pipe",
    "pipe2",
    "preadv",
    "preadv2",
    "pselect6",
    "pwritev",
    "pwritev2",
    "recvfrom",
    "recvmsg",
    "rename",
    "renameat",
    "renameat2",
    "rmdir",
    "rt_sigpending",
    "rt_sigsuspend",
    "rt_sigtimedwait",
    "sched_get_priority_max",
    "sched_get_priority_min",
    "select",
    "sendfile",
    "sendmsg",
    "sendto",
    "set_mempolicy",
    "set_tid_address",
    "setitimer",
    "setsockopt",
    "shutdown",
    "signalfd4",
    "symlink",
    "symlinkat",
    "sync_file_range",
    "time",
    "timer_create",
    "timer_delete",
    "timer_getoverrun",
    "timer_gettime",
    "timer_settime",
    "timerfd_create",
    "timerfd_gettime",
    "timerfd_settime",
    "times",
    "truncate",
    "umask",
    "unlink",
    "unlinkat",
    "utimensat",
    "wait4",
    "waitid",
};

constexpr std::array kOfNetwork{"accept", "accept4", "bind", "connect", "listen", "recvmmsg", "sendmmsg"};

std::optional<std::string> restrict_system_calls(const ProgramConfinement& confinement, bool files_restricted) {
  const auto equals = &SystemCallFilter::equals;
  SystemCallFilter filter;
  filter.allow(computing_system_calls());
  filter.allow(kOfPrograms);
  allow_threads(filter);
  allow_self_control(filter);
  allow_opening(filter, files_restricted);
  filter.allow("kill", {equals(0, static_cast<uint64_t>(::getpid()))});
  filter.allow("arch_prctl", {equals(0, kSetThreadArea)});
  if (!confinement.controlled.empty()) {
    filter.allow("ioctl");  // of other devices, which it cannot open, only Landlock knows
    // CUDA's library listens on a socket of its own, and fails without. No server is reached by that.
    constexpr uint64_t kTypeWithoutFlags = 0xf;
    filter.allow("socket", {equals(0, AF_UNIX), {.argument = 1, .mask = kTypeWithoutFlags, .value = SOCK_SEQPACKET}});
    filter.allow("bind");
    filter.allow("listen");
  } else {
    for (const uint64_t request : {FIOCLEX, FIONCLEX, FIONBIO, FIONREAD, TCGETS, TIOCGWINSZ}) {
      filter.allow("ioctl", {equals(1, request)});
    }
  }
  // Newer calls that the C library replaces by older ones where they do not exist.
  for (const char* name : {"openat2", "fchmodat2", "epoll_pwait2"}) filter.refuse(name, ENOSYS);
  // Within the process. Whole sockets of this family would reach other servers.
  filter.allow("socketpair", {equals(0, AF_UNIX)});
  if (confinement.network) {
    filter.allow(kOfNetwork);
    for (const uint64_t family : {AF_INET, AF_INET6}) filter.allow("socket", {equals(0, family)});
  }
  return filter.load();
}

}  // namespace

Result<std::vector<std::string>> confine(const Confinement& confinement) {
  std::vector<std::string> missing;
  const auto note = [&](std::optional<std::string> what) {
    if (what) missing.push_back(*std::move(what));
  };
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  step_back(confinement.background);
  ::prctl(PR_SET_DUMPABLE, 0);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return Status::internal(because("cannot give up new privileges", errno));
  }
  FOLIOT_RETURN_IF_ERROR(limit_resources(confinement));
  FOLIOT_ASSIGN_OR_RETURN(const bool files_restricted, restrict_files(confinement.readable));
  if (!files_restricted) note("no Landlock: it may read what this user may read");
  note(drop_privileges(files_restricted));
  note(restrict_system_calls());
  return missing;
}

Result<std::vector<std::string>> confine_program(const ProgramConfinement& confinement) {
  std::vector<std::string> missing;
  const auto note = [&](std::optional<std::string> what) {
    if (what) missing.push_back(*std::move(what));
  };
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  step_back(false);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return Status::internal(because("cannot give up new privileges", errno));
  }
  FOLIOT_RETURN_IF_ERROR(limit_resources(confinement));
  FOLIOT_ASSIGN_OR_RETURN(const bool files_restricted, restrict_files(confinement));
  if (!files_restricted) note("no Landlock: it may read and execute what this user may");
  if (kSanitized && confinement.memory_bytes > 0) note("no limit of memory under a sanitizer");
  note(drop_privileges(files_restricted));
  note(restrict_system_calls(confinement, files_restricted));
  return missing;
}

}  // namespace foliot
