#include "foundation/process/system_call_filter.h"

#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <vector>

#include "foundation/base/error_text.h"

namespace foliot {
namespace {

constexpr std::array kComputing{
    "brk",
    "clock_getres",
    "clock_gettime",
    "clock_nanosleep",
    "close",
    "dup",
    "exit",
    "exit_group",
    "fadvise64",
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

}  // namespace

SystemCallFilter::SystemCallFilter() : filter_(::seccomp_init(SCMP_ACT_ERRNO(EPERM)), &::seccomp_release) {}

void SystemCallFilter::add(uint32_t action, const char* name, std::initializer_list<Condition> conditions) {
  const int number = ::seccomp_syscall_resolve_name(name);
  if (number == __NR_SCMP_ERROR || filter_ == nullptr) return;
  std::vector<scmp_arg_cmp> all;  // the library's own macros for it are C
  for (const Condition& condition : conditions) {
    all.push_back({condition.argument, SCMP_CMP_MASKED_EQ, condition.mask, condition.value});
  }
  const int error =
      ::seccomp_rule_add_array(filter_.get(), action, number, static_cast<unsigned>(all.size()), all.data());
  if (error != 0) error_ = -error;
}

void SystemCallFilter::allow(const char* name, std::initializer_list<Condition> conditions) {
  add(SCMP_ACT_ALLOW, name, conditions);
}

void SystemCallFilter::allow(std::span<const char* const> names) {
  for (const char* name : names) allow(name);
}

void SystemCallFilter::refuse(const char* name, int error, std::initializer_list<Condition> conditions) {
  add(SCMP_ACT_ERRNO(static_cast<uint32_t>(error)), name, conditions);
}

std::optional<std::string> SystemCallFilter::load() {
  if (filter_ == nullptr) error_ = ENOMEM;
  if (error_ == 0) error_ = -::seccomp_load(filter_.get());
  if (error_ == 0) return std::nullopt;
  return "no filter of system calls: " + error_text(error_);
}

std::span<const char* const> computing_system_calls() { return kComputing; }

// clone3() hides its flags, so that it does not exist.
void allow_threads(SystemCallFilter& filter) {
  constexpr uint64_t kNamespaces =
      CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
  filter.allow("clone", {{.argument = 0, .mask = CLONE_THREAD | kNamespaces, .value = CLONE_THREAD}});
  filter.refuse("clone3", ENOSYS);
}

void allow_descriptor_control(SystemCallFilter& filter) {
  for (const uint32_t command : {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_GETLK, F_SETLK, F_SETLKW,
                                 F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW, F_GETPIPE_SZ, F_GET_SEALS}) {
    filter.allow("fcntl", {SystemCallFilter::equals(1, command)});
  }
  filter.allow("fcntl", {SystemCallFilter::equals(1, F_SETFL), SystemCallFilter::has_none_of(2, O_ASYNC)});
}

void allow_self_control(SystemCallFilter& filter) {
  filter.allow("tgkill", {SystemCallFilter::equals(0, static_cast<uint32_t>(::getpid()))});
  // Of the calling thread: the number of another one may be that of another process's.
  filter.allow("sched_setaffinity", {SystemCallFilter::equals(0, 0)});
  filter.allow("prctl", {SystemCallFilter::equals(0, PR_SET_NAME)});
  filter.allow("prlimit64", {SystemCallFilter::equals(0, 0)});
  // Linux grants AMX to processes that ask for it. Without it a compiled model would be one for
  // a lesser processor than the worker finds.
  constexpr uint64_t kGetXcompPermission = 0x1022;      // asm/prctl.h: ARCH_GET_XCOMP_PERM,
  constexpr uint64_t kRequestXcompPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  filter.allow("arch_prctl", {SystemCallFilter::equals(0, kGetXcompPermission)});
  filter.allow("arch_prctl", {SystemCallFilter::equals(0, kRequestXcompPermission)});
}

}  // namespace foliot
