#include "foundation/process/confinement.h"

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
#include <cstdlib>
#include <fstream>
#include <optional>

#include "foundation/base/error_text.h"
#include "foundation/process/background.h"
#include "foundation/process/landlock.h"
#include "foundation/process/own_id.h"
#include "foundation/process/own_mounts.h"
#include "foundation/process/sanitized.h"
#include "foundation/process/system_call_filter.h"

namespace foliot {
namespace {

// Of asm/prctl.h: ARCH_SET_FS, with which the C library begins.
constexpr uint64_t kSetThreadArea = 0x1002;
constexpr rlim_t kOpenFilesMax = 64;
constexpr rlim_t kOpenFilesOfProgramMax = 1024;

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
Result<bool> restrict_files(const Confinement& confinement) {
  std::optional<Landlock> landlock = Landlock::create(false, confinement.kernel.landlock);
  if (!landlock) return false;
  for (const std::filesystem::path& path : confinement.readable) {
    FOLIOT_RETURN_IF_ERROR(landlock->allow(path, Landlock::Access::kRead));
  }
  for (const std::filesystem::path& path : confinement.controlled) {
    FOLIOT_RETURN_IF_ERROR(landlock->allow(path, Landlock::Access::kControl));
  }
  return landlock->enforce();
}

// Root keeps the right to read any file only where Landlock says which; `has_own_id`: of one that became another user.
std::optional<std::string> drop_privileges(bool files_restricted, bool has_own_id = false) {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, 2> have{};
  if (::syscall(SYS_capget, &header, have.data()) != 0) return because("privileges not dropped", errno);
  const uint32_t kept = files_restricted ? (1u << CAP_DAC_READ_SEARCH) & have[0].permitted : 0;
  std::array<__user_cap_data_struct, 2> wanted{};
  wanted[0].effective = wanted[0].permitted = kept;
  if (has_own_id) wanted[0].inheritable = kept;
  if (::syscall(SYS_capset, &header, wanted.data()) != 0) return because("privileges not dropped", errno);
  if (has_own_id && kept != 0) ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_READ_SEARCH, 0, 0);
  return std::nullopt;
}

// Which calls on files the filter leaves to others to limit.
struct FileRights {
  bool write = false;     // what is opened to be written
  bool truncate = false;  // by name, which older Landlocks do not know
  bool names = false;     // making, moving and removing
  bool modes = false;     // of files that are its own
  bool times = false;     // of files that it may write
};

void allow_opening(SystemCallFilter& filter, const FileRights& rights) {
  constexpr uint64_t kWriting = O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY);
  const auto allow = [&](uint64_t mask, uint64_t value) {
    filter.allow("open", {{.argument = 1, .mask = mask, .value = value}});
    filter.allow("openat", {{.argument = 2, .mask = mask, .value = value}});
  };
  if (!rights.write) return allow(kWriting, O_RDONLY);
  if (rights.truncate) return allow(0, 0);
  allow(O_TRUNC, 0);
  allow(O_ACCMODE, O_WRONLY);  // so that Landlock is asked, which a file that is only read is truncated without
  allow(O_ACCMODE, O_RDWR);
}

// Any request to any driver, but those of sockets (type 0x89), of which some name a process that gets signals.
void allow_device_control(SystemCallFilter& filter) {
  constexpr uint64_t kOfSockets = 0x8900, kType = 0xff00;
  for (uint64_t bit = 0x100; bit < kType; bit <<= 1) {
    filter.allow("ioctl", {{.argument = 1, .mask = bit, .value = ~kOfSockets & bit}});
  }
}

// The kernels that are generated need executable memory.
std::optional<std::string> restrict_system_calls(bool controls_devices) {
  if (kSanitized) return "no filter of system calls under a sanitizer";
  SystemCallFilter filter;
  filter.allow(computing_system_calls());
  filter.allow("memfd_create");
  allow_threads(filter);
  allow_self_control(filter);
  allow_descriptor_control(filter);
  allow_opening(filter, {.write = controls_devices});
  if (controls_devices) {
    allow_device_control(filter);
    filter.allow("access");  // by which Vulkan's loader looks for drivers; it shows whether a file is there
  }
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

// What keeps it from the files and processes of others.
struct Isolation {
  int landlock = 0;        // the version of its interface; 0: none
  bool read_only = false;  // all file systems but its own
  bool own_processes = false;
  bool own_id = false;
};

// The version of Landlock; 0: this kernel cannot.
Result<int> restrict_files(const ProgramConfinement& confinement) {
  std::optional<Landlock> landlock = Landlock::create(confinement.network, confinement.kernel.landlock);
  if (!landlock) return 0;
  const auto allow = [&](const std::vector<std::filesystem::path>& paths, Landlock::Access access) -> Status {
    for (const std::filesystem::path& path : paths) FOLIOT_RETURN_IF_ERROR(landlock->allow(path, access));
    return {};
  };
  FOLIOT_RETURN_IF_ERROR(allow(confinement.readable, Landlock::Access::kRead));
  FOLIOT_RETURN_IF_ERROR(allow(confinement.listed, Landlock::Access::kList));
  FOLIOT_RETURN_IF_ERROR(allow(confinement.executable, Landlock::Access::kExecute));
  FOLIOT_RETURN_IF_ERROR(allow(confinement.changeable, Landlock::Access::kChange));
  FOLIOT_RETURN_IF_ERROR(allow(confinement.devices, Landlock::Access::kReadWrite));
  FOLIOT_RETURN_IF_ERROR(allow(confinement.controlled, Landlock::Access::kControl));
  return landlock->enforce() ? landlock->version() : 0;
}

// Before Landlock, which forbids mounting.
void isolate_mounts(const ProgramConfinement& confinement, Isolation& isolation, std::vector<std::string>& missing) {
  const auto done = [&](std::optional<std::string> failure) {
    if (failure) missing.push_back(*std::move(failure));
    return !failure;
  };
  isolation.own_processes = true;
  if (!done(keep_mounts_apart())) return;
  for (const std::filesystem::path& folder : confinement.changeable) {
    if (confinement.disk_bytes > 0) done(mount_memory(folder, confinement.disk_bytes));
  }
  isolation.read_only = done(mount_all_read_only(confinement.changeable));
  done(mount_own_processes(!confinement.controlled.empty()));
}

// As processes outside know it, while /proc is theirs.
pid_t number_outside() {
  std::array<char, 32> text{};
  return ::readlink("/proc/self", text.data(), text.size() - 1) > 0 ? std::atoi(text.data()) : 0;
}

// What interpreters and their libraries make, besides. Where they are refused, a library
// does without, or fails: nothing here reaches another process, or memory that no limit
// counts (memfd_create, shmget).
constexpr std::array kOfPrograms{
    "access",
    "alarm",
    "chdir",
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
    "fgetxattr",
    "flistxattr",
    "flock",
    "fstatfs",
    "get_mempolicy",
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
    "umask",
    "wait4",
    "waitid",
};

constexpr std::array kOfNames{"mkdir", "mkdirat", "rename", "renameat",  "renameat2",
                              "rmdir", "symlink", "unlink", "symlinkat", "unlinkat"};
constexpr std::array kOfModes{"chmod", "fchmod", "fchmodat"};
constexpr std::array kOfNetwork{"accept", "accept4", "bind", "connect", "listen", "recvmmsg", "sendmmsg"};

// Landlock knows nothing of modes and times. Of files on disk that are changeable, a mount that can be written remains.
FileRights file_rights(const Isolation& isolation) {
  constexpr int kKnowsTruncation = 3;
  const bool restricted = isolation.landlock > 0;
  return {.write = restricted,
          .truncate = isolation.read_only || isolation.landlock >= kKnowsTruncation,
          .names = restricted || isolation.read_only,
          .modes = isolation.read_only || isolation.own_id,
          .times = isolation.read_only};
}

std::optional<std::string> restrict_system_calls(const ProgramConfinement& confinement, const Isolation& isolation) {
  const auto equals = &SystemCallFilter::equals;
  const FileRights rights = file_rights(isolation);
  constexpr uint64_t kTypeWithoutFlags = 0xf;
  SystemCallFilter filter;
  filter.allow(computing_system_calls());
  filter.allow(kOfPrograms);
  allow_threads(filter);
  allow_self_control(filter);
  allow_descriptor_control(filter);
  allow_opening(filter, rights);
  if (rights.names) filter.allow(kOfNames);
  if (rights.write && rights.truncate) filter.allow("truncate");
  if (rights.modes) filter.allow(kOfModes);
  if (rights.times) filter.allow("utimensat");
  if (isolation.own_processes || isolation.own_id) filter.allow("sched_setaffinity");
  filter.allow("kill", {equals(0, static_cast<uint32_t>(::getpid()))});
  filter.allow("arch_prctl", {equals(0, kSetThreadArea)});
  if (!confinement.controlled.empty()) {
    allow_device_control(filter);  // of other devices, which it cannot open, only Landlock knows
    // CUDA's library listens on a socket of its own, and fails without. No server is reached by that.
    filter.allow("socket", {equals(0, AF_UNIX), {.argument = 1, .mask = kTypeWithoutFlags, .value = SOCK_SEQPACKET}});
    filter.allow("bind");
    filter.allow("listen");
  } else {
    for (const uint32_t request : {FIOCLEX, FIONCLEX, FIONBIO, FIONREAD, TCGETS, TIOCGWINSZ}) {
      filter.allow("ioctl", {equals(1, request)});
    }
  }
  // Newer calls that the C library replaces by older ones where they do not exist.
  for (const char* name : {"openat2", "fchmodat2", "epoll_pwait2"}) filter.refuse(name, ENOSYS);
  // Within the process. Whole sockets of this family would reach other servers, as would pairs that send
  // datagrams to any name.
  for (const uint64_t type : {SOCK_STREAM, SOCK_SEQPACKET}) {
    filter.allow("socketpair", {equals(0, AF_UNIX), {.argument = 1, .mask = kTypeWithoutFlags, .value = type}});
  }
  if (confinement.network) {
    filter.allow(kOfNetwork);
    for (const uint32_t family : {AF_INET, AF_INET6}) filter.allow("socket", {equals(0, family)});
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
  FOLIOT_ASSIGN_OR_RETURN(const bool files_restricted, restrict_files(confinement));
  if (!files_restricted) note("no Landlock: it may read what this user may read");
  note(drop_privileges(files_restricted));
  // Where Landlock does not say which, no device is opened.
  note(restrict_system_calls(files_restricted && !confinement.controlled.empty()));
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
  Isolation isolation;
  const pid_t number = number_outside();
  if (confinement.namespaces) isolate_mounts(confinement, isolation, missing);
  FOLIOT_ASSIGN_OR_RETURN(isolation.landlock, restrict_files(confinement));
  const bool files_restricted = isolation.landlock > 0;
  if (!files_restricted) note("no Landlock: it may read and execute what this user may");
  if (kSanitized && confinement.memory_bytes > 0) note("no limit of memory under a sanitizer");
  // Another user reads what root may by a privilege, which only Landlock limits, and opens no devices of root's.
  if (confinement.own_id && confinement.kernel.ids && files_restricted && confinement.controlled.empty()) {
    FOLIOT_ASSIGN_OR_RETURN(isolation.own_id, take_own_id(number, confinement.changeable));
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // which a change of the user clears
  }
  note(drop_privileges(files_restricted, isolation.own_id));
  note(restrict_system_calls(confinement, isolation));
  return missing;
}

}  // namespace foliot
