"""Every system call of x86-64 with typical arguments, each on a target that is harmless: what a container may make and what not.

The code of `code_that_makes_all` makes them within a container and raises RuntimeError if one ends otherwise than it should.
"""

import json
import pathlib
import re

NUMBERS = ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h")
# They end the thread or the process, or wait for a signal.
NOT_MADE = {"exit", "exit_group", "rt_sigreturn", "rt_sigsuspend"}

# A line has arguments and the names of calls that get them. Words among the arguments: the path of a file outside and one
# that is not there, a descriptor of the file, one of a socket, another process, the calling one, and zeroed memory.
LISTED = """
| sched_yield getpid getuid getgid geteuid getegid gettid getppid getpgrp restart_syscall
0 0 0 | poll madvise mremap mprotect munmap brk msync mlock mlock2 munlock membarrier rseq set_robust_list set_tid_address
0 0 memory | mincore pipe
fd memory 8 | read getdents64 readv preadv preadv2
-1 memory 8 | write writev pwritev pwritev2 getsockname getpeername recvmsg sendmsg timer_gettime timerfd_gettime
fd memory 8 0 | pread64
-1 memory 8 0 0 0 | pwrite64 recvfrom sendto epoll_wait epoll_pwait signalfd4
fd memory | fstat fstatfs
fd 0 0 0 | lseek fadvise64 ftruncate fsync fdatasync dup sync_file_range
fd 200 0 | dup2 dup3
-1 0 0 0 | close fallocate shutdown timer_delete timer_getoverrun timer_settime timerfd_settime epoll_ctl
-1 0 0 memory 0 | setsockopt getsockopt
-1 fd 0 8 | sendfile
fd 0 -1 0 8 0 | copy_file_range
fd 8 | flock
fd file memory 64 | fgetxattr
file memory | stat lstat statfs
file 0 | access chdir open
fd | fchdir
-100 file 0 0 | openat faccessat faccessat2
-100 file memory 0 | newfstatat
-100 file 0 0 memory | statx
file memory 64 | readlink listxattr llistxattr
fd memory 64 | flistxattr
-100 file memory 64 | readlinkat
file file memory 64 | getxattr lgetxattr
0 4096 1 34 -1 0 | mmap
0 0 memory 0 8 | ppoll
0 0 0 0 memory 0 | select pselect6
0 0 memory 8 | rt_sigprocmask rt_sigaction
memory 0 memory 8 | rt_sigtimedwait
memory 8 0 | rt_sigpending getrandom getcwd
0 memory 0 | sigaltstack getitimer setitimer sched_getparam getrusage
memory 0 | nanosleep gettimeofday time times sysinfo uname getcpu
1 0 memory 0 | clock_nanosleep
1 memory | clock_gettime clock_getres
7 memory | getrlimit
0 7 0 memory | prlimit64
memory 1 0 0 0 0 | futex
0 128 memory | sched_getaffinity sched_setaffinity
0 0 | sched_getscheduler sched_get_priority_max sched_get_priority_min getpriority getpgid getsid getgroups alarm eventfd2
1 0 | epoll_create timerfd_create
0 | epoll_create1
0 0 0 0 0 0 | mbind set_mempolicy get_mempolicy
memory memory memory | getresuid getresgid
memory 0 | pipe2
1 0 memory | timer_create
18 | umask
-1 0 1 0 | wait4
0 0 memory 5 0 | waitid
fd 3 | fcntl
fd 1 | fcntl
fd 1030 3 | fcntl
fd 4 0 | fcntl
fd 21531 memory | ioctl
1 1 0 memory | socketpair
1 5 0 memory | socketpair
15 memory | prctl
4130 memory | arch_prctl
self 0 | kill
"""
REFUSED = """
| fork vfork pause setsid sync vhangup munlockall inotify_init
17 0 0 0 0 | clone
268435473 0 0 0 0 | clone
65536 0 0 0 0 | unshare
268435456 0 0 0 0 | unshare
memory 64 | clone3 adjtimex sethostname setdomainname sched_rr_get_interval
file 0 0 | execve uselib acct chroot swapon swapoff umount2 delete_module utime utimes mq_unlink open_tree fspick memfd_create
-100 file 0 0 0 | execveat
other 0 0 | kill tkill setpgid pidfd_open process_mrelease
-1 0 0 | kill
other other 0 | tgkill kcmp
other other 0 memory | rt_tgsigqueueinfo
other 0 memory | rt_sigqueueinfo
16902 other 0 0 | ptrace
other memory 0 memory 0 0 | process_vm_readv process_vm_writev process_madvise
other 7 0 memory | prlimit64
other 128 memory | sched_setaffinity
other memory 48 0 | sched_setparam sched_setattr sched_getattr get_robust_list
other 0 memory | sched_setscheduler
0 other 19 | setpriority
1 other 24576 | ioprio_set
1 0 | ioprio_get
other 0 0 0 0 0 | move_pages migrate_pages pidfd_getfd pidfd_send_signal
memory other -1 -1 0 | perf_event_open
0 4096 896 | shmget semget msgget
0 0 0 0 | shmat shmctl shmdt semop semctl semtimedop msgsnd msgrcv msgctl
1 1 0 | socket
1 2 0 | socket
2 1 0 | socket
2 2 0 | socket
2 3 1 | socket
10 1 0 | socket
16 3 0 | socket
17 3 0 | socket
38 5 0 | socket
40 1 0 | socket
1 2 0 memory | socketpair
2 1 0 memory | socketpair
-1 memory 16 0 0 | connect accept accept4 bind listen recvmmsg sendmmsg
fd 8 other | fcntl
fd 15 memory | fcntl
fd 10 10 | fcntl
fd 1024 0 | fcntl
fd 1026 0 | fcntl
fd 1033 15 | fcntl
fd 1031 65536 | fcntl
socket 4 8192 | fcntl
socket 35073 memory | ioctl
socket 35074 memory | ioctl
fd 21522 memory | ioctl
fd 21514 memory | ioctl
fd 1074025826 memory | ioctl
file 0 | truncate rmdir
file new | rename link symlink
-100 file -100 new 0 | renameat renameat2 linkat
file -100 new | symlinkat
new 448 0 | mkdir creat mknod
-100 new 448 0 | mkdirat mknodat
file 511 | chmod
fd 511 | fchmod
-100 file 511 0 | fchmodat fchmodat2
file 0 0 | chown lchown unlink
fd 0 0 | fchown setns readahead syncfs
-100 file 0 0 0 | fchownat futimesat utimensat openat2 unlinkat name_to_handle_at mount_setattr inotify_add_watch
-100 file 1 0 | openat
-100 file 2 0 | openat
-100 file 512 0 | openat
-100 new 65 384 | openat
file 1 0 | open
file 512 0 | open
new 65 384 | open
fd memory 64 | getdents
-1 -1 -1 | setuid setgid setreuid setregid setresuid setresgid setfsuid setfsgid setgroups
memory memory | capget capset
3 memory 64 | syslog
-1 | personality
0 memory 0 | ustat sysfs modify_ldt
file file | pivot_root
4 1 0 0 0 | prctl
8 1 0 0 0 | prctl
22 0 0 0 0 | prctl
23 0 0 0 0 | prctl
24 0 0 0 0 | prctl
35 14 0 0 0 | prctl
36 1 0 0 0 | prctl
47 1 0 0 0 | prctl
59 1 0 0 0 | prctl
4097 0 | arch_prctl
4114 0 | arch_prctl
99 memory | setrlimit clock_settime clock_adjtime
0 0 | settimeofday
99 | mlockall
file file file 0 0 | mount move_mount quotactl quotactl_fd
0 0 0 0 | reboot iopl ioperm init_module finit_module kexec_load kexec_file_load
0 0 0 0 0 0 | _sysctl create_module get_kernel_syms query_module nfsservctl getpmsg putpmsg afs_syscall tuxcall security vserver
0 0 0 0 0 0 | epoll_ctl_old epoll_wait_old lookup_dcookie remap_file_pages
file file memory 1 0 | setxattr lsetxattr
fd file memory 1 0 | fsetxattr
file file | removexattr lremovexattr
fd file | fremovexattr
1 memory 0 0 0 | io_setup io_destroy io_getevents io_submit io_cancel io_pgetevents io_uring_setup io_uring_enter io_uring_register
memory 0 | set_thread_area get_thread_area
new 66 384 0 | mq_open
-1 0 0 0 0 | mq_timedsend mq_timedreceive mq_notify mq_getsetattr inotify_rm_watch splice tee vmsplice fsconfig fsmount
file file 0 0 0 | add_key request_key fsopen
0 0 0 0 0 | keyctl bpf seccomp landlock_add_rule landlock_restrict_self fanotify_mark
0 0 1 | landlock_create_ruleset
-1 memory 8 0 | signalfd
0 0 | eventfd inotify_init1 fanotify_init userfaultfd memfd_secret
-100 memory 0 | open_by_handle_at
0 0 0 0 | pkey_mprotect pkey_alloc pkey_free set_mempolicy_home_node
4000 4001 0 | close_range
-1 memory 1 0 0 8 | epoll_pwait2
memory 0 0 0 0 | futex_waitv
"""

MAKES_ALL = """
import ctypes, errno, json
def make_all(listed, refused, words):
    own, far = __import__("socket").socketpair()
    file = open(words["file"])
    memory = ctypes.create_string_buffer(4096)
    known = {"file": words["file"].encode(), "new": words["new"].encode(), "fd": file.fileno(), "socket": own.fileno(),
             "other": words["other"], "self": os.getpid(), "memory": memory}
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    may_not = {errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EROFS, errno.ESRCH}
    wrong = []
    for is_listed, calls in ((True, listed), (False, refused)):
        for name, number, arguments in calls:
            ctypes.memset(memory, 0, 4096)
            values = [known[each] if each in known else int(each) for each in arguments]
            values = [ctypes.c_long(each) if isinstance(each, int) else each for each in values]
            ctypes.set_errno(0)
            result = call(ctypes.c_long(number), *values)
            error = ctypes.get_errno() if result == -1 else 0
            if is_listed and error in (errno.EPERM, errno.ENOSYS) or not is_listed and error not in may_not:
                wrong.append((name, arguments, errno.errorcode.get(error, result)))
    if wrong:
        raise RuntimeError("calls that end otherwise: " + str(wrong[:8]))
    print("system calls made:", len(listed) + len(refused))
"""


def numbers():
    """{name: number} of all that the headers of this machine know; None where there are none."""
    header = next((path for path in map(pathlib.Path, NUMBERS) if path.exists()), None)
    return header and {name: int(number) for name, number in re.findall(r"#define __NR_(\w+) (\d+)", header.read_text())}


def calls_of(table, known):
    """[name, number, arguments] of those that the headers know."""
    calls = []
    for line in table.strip().splitlines():
        arguments, names = line.split("|")
        calls += [[name, known[name], arguments.split()] for name in names.split() if name in known]
    return calls


def all_calls(known):
    return calls_of(LISTED, known) + calls_of(REFUSED, known)


def code_that_makes_all(known, file, new, other):
    """(code, how many): for a container that may read `file`; `new` is not there, and `other` is a process outside."""
    listed, refused = calls_of(LISTED, known), calls_of(REFUSED, known)
    words = {"file": str(file), "new": str(new), "other": other}
    return f"{MAKES_ALL}\nmake_all(*json.loads({json.dumps([listed, refused, words])!r}))", len(listed) + len(refused)
