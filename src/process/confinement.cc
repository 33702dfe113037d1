#include "process/confinement.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <memory>
#include <optional>

#include "base/error_text.h"
#include "platform/descriptor.h"

namespace foliot {
namespace {

constexpr rlim_t kOpenFilesMax = 64;

// Sanitizers reserve terabytes of addresses and make system calls of their own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

std::string because(std::string_view what, int error) { return fmt::format("{}: {}", what, error_text(error)); }

// `grace`: how far it is from the limit's warning, a signal, to its hard end.
Status limit(int resource, rlim_t value, rlim_t grace = 0) {
  const rlimit wanted{value, value + grace};
  if (::setrlimit(static_cast<__rlimit_resource_t>(resource), &wanted) == 0) return {};
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
  if (!background) return;
  const sched_param priority{};
  ::sched_setscheduler(0, SCHED_IDLE, &priority);
  ::setpriority(PRIO_PROCESS, 0, 19);
  constexpr int kThisProcess = 1, kIdleClass = 3 << 13;  // of <linux/ioprio.h>
  ::syscall(SYS_ioprio_set, kThisProcess, 0, kIdleClass);
}

// ---- Landlock: which files can be reached ----
//
// The rights of all versions of the interface, so that any kernel headers do.

struct LandlockRules {
  uint64_t files;
  uint64_t network;  // from version 4 on
  uint64_t scopes;   // from version 6 on
};

struct [[gnu::packed]] LandlockPath {
  uint64_t allowed;
  int32_t parent;
};

constexpr uint64_t kReadFile = 1 << 2, kReadFolder = 1 << 3;

// What each version can forbid.
LandlockRules rules_of(int version) {
  LandlockRules rules{};
  rules.files = (1 << 13) - 1;
  if (version >= 2) rules.files |= 1 << 13;  // moving files between folders
  if (version >= 3) rules.files |= 1 << 14;  // truncating
  if (version >= 4) rules.network = 3;       // TCP: bind and connect
  if (version >= 5) rules.files |= 1 << 15;  // controlling devices
  if (version >= 6) rules.scopes = 3;        // abstract sockets and signals of others
  return rules;
}

size_t rules_bytes(int version) { return version >= 6 ? 24 : version >= 4 ? 16 : 8; }

Status allow_reading(const std::filesystem::path& path, const Descriptor& ruleset) {
  constexpr int kPathBeneath = 1;
  const Descriptor opened(::open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat status {};
  if (!opened.is_open() || ::fstat(opened.number(), &status) != 0) {
    return Status::not_found(because(fmt::format("cannot open {}", path.string()), errno));
  }
  const LandlockPath rule{.allowed = S_ISDIR(status.st_mode) ? kReadFile | kReadFolder : kReadFile,
                          .parent = opened.number()};
  if (::syscall(SYS_landlock_add_rule, ruleset.number(), kPathBeneath, &rule, 0) == 0) return {};
  return Status::internal(because(fmt::format("cannot limit reading to {}", path.string()), errno));
}

// True if files are restricted, false if this kernel cannot.
Result<bool> restrict_files(const std::vector<std::filesystem::path>& readable) {
  constexpr unsigned kAskVersion = 1;
  const auto version = static_cast<int>(::syscall(SYS_landlock_create_ruleset, nullptr, 0, kAskVersion));
  if (version < 1) return false;
  const LandlockRules rules = rules_of(version);
  const Descriptor ruleset(static_cast<int>(::syscall(SYS_landlock_create_ruleset, &rules, rules_bytes(version), 0)));
  if (!ruleset.is_open()) return false;
  for (const std::filesystem::path& path : readable) FOLIOT_RETURN_IF_ERROR(allow_reading(path, ruleset));
  return ::syscall(SYS_landlock_restrict_self, ruleset.number(), 0) == 0;
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

// ---- seccomp: which system calls can be made ----

// Memory, threads, time, signals of its own, and files that are open or that
// Landlock lets it open. The kernels that are generated need executable memory.
constexpr std::array kAllowed{
    "brk",
    "clock_getres",
    "clock_gettime",
    "clock_nanosleep",
    "close",
    "dup",
    "exit",
    "exit_group",
    "fadvise64",
    "fchmod",
    "fcntl",
    "fdatasync",
    "fstat",
    "fsync",
    "ftruncate",
    "futex",
    "getcpu",
    "getcwd",
    "getdents64",
    "getegid",
    "geteuid",
    "getgid",
    "getpid",
    "getppid",
    "getpriority",
    "getrandom",
    "getrlimit",
    "getrusage",
    "gettid",
    "gettimeofday",
    "getuid",
    "lseek",
    "lstat",
    "madvise",
    "memfd_create",
    "mmap",
    "mprotect",
    "mremap",
    "munmap",
    "nanosleep",
    "newfstatat",
    "poll",
    "ppoll",
    "pread64",
    "pwrite64",
    "read",
    "readlink",
    "readlinkat",
    "readv",
    "restart_syscall",
    "rseq",
    "rt_sigaction",
    "rt_sigprocmask",
    "rt_sigreturn",
    "sched_getaffinity",
    "sched_getparam",
    "sched_getscheduler",
    "sched_setaffinity",
    "sched_yield",
    "set_robust_list",
    "sigaltstack",
    "stat",
    "statfs",
    "statx",
    "sysinfo",
    "uname",
    "write",
    "writev",
};

class SystemCallFilter {
 public:
  SystemCallFilter() : filter_(::seccomp_init(SCMP_ACT_ERRNO(EPERM)), &::seccomp_release) {}

  template <typename... Conditions>
  void allow(const char* name, Conditions... conditions) {
    add(SCMP_ACT_ALLOW, name, conditions...);
  }
  template <typename... Conditions>
  void add(uint32_t action, const char* name, Conditions... conditions) {
    const int number = ::seccomp_syscall_resolve_name(name);
    if (number == __NR_SCMP_ERROR || filter_ == nullptr) return;  // of another architecture
    std::array<scmp_arg_cmp, sizeof...(Conditions)> all{conditions...};
    if (const int error = ::seccomp_rule_add_array(filter_.get(), action, number, all.size(), all.data()); error != 0) {
      error_ = -error;
    }
  }
  // Zero, or the errno of what went wrong.
  int load() {
    if (filter_ == nullptr) return ENOMEM;
    return error_ != 0 ? error_ : -::seccomp_load(filter_.get());
  }

 private:
  std::unique_ptr<void, decltype(&::seccomp_release)> filter_;
  int error_ = 0;
};

// Of one argument of a system call. The library's own macros for it are C.
scmp_arg_cmp equals(unsigned argument, uint64_t value) { return {argument, SCMP_CMP_EQ, value, 0}; }
scmp_arg_cmp equals_where(unsigned argument, uint64_t mask, uint64_t value) {
  return {argument, SCMP_CMP_MASKED_EQ, mask, value};
}

std::optional<std::string> restrict_system_calls() {
  if (kSanitized) return "no filter of system calls under a sanitizer";
  SystemCallFilter filter;
  for (const char* name : kAllowed) filter.allow(name);
  // Threads, but no processes. clone3() hides its flags, so that it does not exist.
  filter.allow("clone", equals_where(0, CLONE_THREAD, CLONE_THREAD));
  filter.add(SCMP_ACT_ERRNO(ENOSYS), "clone3");
  // Files are opened to be read.
  constexpr uint64_t kWriting = O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY);
  filter.allow("open", equals_where(1, kWriting, O_RDONLY));
  filter.allow("openat", equals_where(2, kWriting, O_RDONLY));
  // Signals to itself (abort), names of threads, its own limits.
  filter.allow("tgkill", equals(0, static_cast<uint64_t>(::getpid())));
  filter.allow("prctl", equals(0, PR_SET_NAME));
  filter.allow("prlimit64", equals(0, 0));
  // Linux grants AMX to processes that ask for it. Without it a compiled model would be one for
  // a lesser processor than the worker finds.
  constexpr uint64_t kGetXcompPermission = 0x1022;      // asm/prctl.h: ARCH_GET_XCOMP_PERM,
  constexpr uint64_t kRequestXcompPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  filter.allow("arch_prctl", equals(0, kGetXcompPermission));
  filter.allow("arch_prctl", equals(0, kRequestXcompPermission));
  if (const int error = filter.load(); error != 0) return because("no filter of system calls", error);
  return std::nullopt;
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

}  // namespace foliot
