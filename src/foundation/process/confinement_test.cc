#include "foundation/process/confinement.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <string>
#include <thread>
#include <vector>

namespace foliot {
namespace {

// A confined function reports success by its exit code.
constexpr int kCould = 0, kCouldNot = 1, kNotConfined = 2, kUnconfined = 3;

bool lacks_more_than_asked(const std::vector<std::string>& unconfined, const KernelLimits& kernel) {
  return std::ranges::any_of(unconfined, [&](const std::string& what) {
    return kernel.landlock > 0 || what.find("no Landlock") == std::string::npos;
  });
}

class ConfinementTest : public testing::Test {
 protected:
  ConfinementTest() {
    std::string name = testing::TempDir() + "foliot_confinement_XXXXXX";
    folder_ = ::mkdtemp(name.data());
    std::filesystem::create_directories(folder_ / "model/below");
    for (const char* file : {"secret", "model/model.onnx", "model/below/weights"}) std::ofstream(folder_ / file) << "x";
  }
  ~ConfinementTest() override { std::filesystem::remove_all(folder_); }

  // The wait status of a child that confines itself, then tries something.
  int try_confined(const std::function<bool()>& something, Confinement confinement = {}) {
    confinement.readable = {folder_ / "model"};
    const pid_t child = ::fork();
    if (child == 0) {
      const auto unconfined = confine(confinement);
      if (!unconfined.ok()) ::_exit(kNotConfined);
      if (lacks_more_than_asked(*unconfined, confinement.kernel)) ::_exit(kUnconfined);
      ::_exit(something() ? kCould : kCouldNot);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
  }
  void expect(int code, const std::function<bool()>& something, const Confinement& confinement = {}) {
    const int status = try_confined(something, confinement);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == kUnconfined) GTEST_SKIP() << "this kernel or build cannot confine fully";
    EXPECT_EQ(WEXITSTATUS(status), code);
  }
  bool can_open(const std::string& file, int flags) { return ::open((folder_ / file).c_str(), flags, 0600) >= 0; }

  std::filesystem::path folder_;
};

TEST_F(ConfinementTest, ReadsTheModelsFolder) {
  expect(kCould, [&] { return can_open("model/model.onnx", O_RDONLY) && can_open("model/below/weights", O_RDONLY); });
}

TEST_F(ConfinementTest, ReadsNothingElse) {
  expect(kCouldNot, [&] { return can_open("secret", O_RDONLY); });
  expect(kCouldNot, [&] { return can_open("model/../secret", O_RDONLY); });
  expect(kCouldNot, [&] { return ::open("/etc/passwd", O_RDONLY) >= 0; });
  std::filesystem::create_symlink(folder_ / "secret", folder_ / "model/link");
  expect(kCouldNot, [&] { return can_open("model/link", O_RDONLY); });
}

TEST_F(ConfinementTest, WritesNothing) {
  expect(kCouldNot, [&] { return can_open("model/new", O_WRONLY | O_CREAT); });
  expect(kCouldNot, [&] { return can_open("model/model.onnx", O_RDWR); });
  expect(kCouldNot, [&] { return ::unlink((folder_ / "model/model.onnx").c_str()) == 0; });
  EXPECT_TRUE(std::filesystem::exists(folder_ / "model/model.onnx"));
}

TEST_F(ConfinementTest, WritesWhatWasOpenBefore) {
  const int file = ::open((folder_ / "output").c_str(), O_WRONLY | O_CREAT, 0600);
  expect(kCould, [&] { return ::write(file, "x", 1) == 1 && ::fsync(file) == 0; });
  ::close(file);
}

TEST_F(ConfinementTest, HasNoNetworkAndNoOtherProcess) {
  expect(kCouldNot, [] { return ::socket(AF_INET, SOCK_STREAM, 0) >= 0; });
  expect(kCouldNot, [] { return ::socket(AF_UNIX, SOCK_STREAM, 0) >= 0; });
  expect(kCouldNot, [] { return ::fork() >= 0; });
  expect(kCouldNot, [] { return ::execl("/bin/true", "true", nullptr) == 0; });
  expect(kCouldNot, [] { return ::kill(::getppid(), 0) == 0; });
}

class KernelConfinementTest : public ConfinementTest, public testing::WithParamInterface<int> {};

// Without Landlock it reads what its user may, as docs/SECURITY.md says, and all else stays refused.
TEST_P(KernelConfinementTest, WithoutLandlockItReadsMoreAndDoesNoMore) {
  const Confinement confinement{.kernel = {.landlock = GetParam()}};
  const auto model = folder_ / "model/model.onnx";
  expect(
      kCould, [&] { return can_open("model/model.onnx", O_RDONLY); }, confinement);
  expect(
      GetParam() == 0 ? kCould : kCouldNot, [] { return ::open("/etc/passwd", O_RDONLY) >= 0; }, confinement);
  for (const std::function<bool()>& refused : std::initializer_list<std::function<bool()>>{
           [&] { return can_open("model/new", O_WRONLY | O_CREAT); }, [&] { return can_open("secret", O_RDWR); },
           [&] { return ::unlink(model.c_str()) == 0; }, [&] { return ::truncate(model.c_str(), 0) == 0; },
           [&] { return can_open("model/model.onnx", O_RDONLY | O_TRUNC); },
           [] { return ::socket(AF_INET, SOCK_STREAM, 0) >= 0; }, [] { return ::socket(AF_UNIX, SOCK_STREAM, 0) >= 0; },
           [] { return ::fork() >= 0; }, [] { return ::execl("/bin/true", "true", nullptr) == 0; },
           [] { return ::kill(::getppid(), 0) == 0; }}) {
    expect(kCouldNot, refused, confinement);
  }
  EXPECT_EQ(std::filesystem::file_size(model), 1u);
}

INSTANTIATE_TEST_SUITE_P(Landlock, KernelConfinementTest, testing::Values(0, 1, 3, 6));

TEST_F(ConfinementTest, MayHaveThreadsAndExecutableMemory) {
  expect(kCould, [] {
    bool ran = false;
    std::thread([&] { ran = true; }).join();
    void* code = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return ran && ::mprotect(code, 4096, PROT_READ | PROT_EXEC) == 0;
  });
}

// As the process that will run the model finds it.
TEST_F(ConfinementTest, HasTheProcessorsInstructions) {
  constexpr int kGetXcompPermission = 0x1022;  // asm/prctl.h: ARCH_GET_XCOMP_PERM, and to ask for one
  constexpr int kRequestXcompPermission = 0x1023;
  for (const int code : {kGetXcompPermission, kRequestXcompPermission}) {
    expect(kCould, [=] {
      uint64_t states = 0;
      // Older kernels know neither, and none grants what does not exist.
      const auto argument = code == kGetXcompPermission ? reinterpret_cast<uintptr_t>(&states) : uintptr_t{63};
      return ::syscall(SYS_arch_prctl, code, argument) == 0 || errno != EPERM;
    });
  }
  constexpr int kGetGs = 0x1004;
  expect(kCouldNot, [] {
    uint64_t base = 0;
    return ::syscall(SYS_arch_prctl, kGetGs, &base) == 0;
  });
}

TEST_F(ConfinementTest, KeepsToItsMemory) {
  const auto takes_a_lot = [] {
    return ::mmap(nullptr, size_t{8} << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                  0) != MAP_FAILED;
  };
  expect(kCould, takes_a_lot);
  expect(kCouldNot, takes_a_lot, {.memory_bytes = uint64_t{4} << 30});
}

TEST_F(ConfinementTest, EndsWhenItsTimeIsOver) {
  const int status = try_confined(
      [] {
        for (std::atomic<int> i = 0;; ++i) {
        }
        return true;
      },
      {.cpu_time = Duration::milliseconds(1)});
  if (WIFEXITED(status) && WEXITSTATUS(status) == kUnconfined)
    GTEST_SKIP() << "this kernel or build cannot confine fully";
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGXCPU);
}

TEST_F(ConfinementTest, AFileMayNotGrowOverItsLimit) {
  const int file = ::open((folder_ / "output").c_str(), O_WRONLY | O_CREAT, 0600);
  const int status = try_confined([&] { return ::pwrite(file, "x", 1, 1 << 20) == 1; }, {.file_bytes = 4096});
  ::close(file);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kUnconfined)
    GTEST_SKIP() << "this kernel or build cannot confine fully";
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGXFSZ);
}

TEST_F(ConfinementTest, ALimitThatIsTighterStays) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit tight{12, 16};
    ::setrlimit(RLIMIT_NOFILE, &tight);
    const auto unconfined = confine({.readable = {folder_ / "model"}});
    rlimit after{};
    ::getrlimit(RLIMIT_NOFILE, &after);
    ::_exit(!unconfined.ok() ? kNotConfined : after.rlim_cur == 12 && after.rlim_max == 16 ? kCould : kCouldNot);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), kCould);
}

TEST_F(ConfinementTest, InTheBackgroundItRunsAtIdlePriority) {
  expect(kCould, [] { return ::sched_getscheduler(0) == SCHED_IDLE; }, {.background = true});
  expect(kCouldNot, [] { return ::sched_getscheduler(0) == SCHED_IDLE; });
}

TEST_F(ConfinementTest, AFolderThatIsNotThereIsNamed) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto result = confine({.readable = {folder_ / "absent"}});
    ::_exit(result.status().code() == StatusCode::kNotFound || result.ok() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// ---- Of a process that executes another program

class ProgramConfinementTest : public ConfinementTest {
 protected:
  // The wait status of a child that confines itself, then tries something.
  int try_program(const std::function<bool()>& something, ProgramConfinement confinement) {
    confinement.readable.insert(confinement.readable.end(), {folder_ / "model", "/usr", "/lib", "/lib64"});
    confinement.changeable = {folder_ / "own"};
    std::filesystem::create_directories(folder_ / "own");
    const pid_t child = ::fork();
    if (child == 0) {
      const auto unconfined = confine_program(confinement);
      if (!unconfined.ok()) ::_exit(kNotConfined);
      if (lacks_more_than_asked(*unconfined, confinement.kernel)) ::_exit(kUnconfined);
      ::_exit(something() ? kCould : kCouldNot);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
  }
  void expect_program(int code, const std::function<bool()>& something, const ProgramConfinement& confinement = {}) {
    const int status = try_program(something, confinement);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == kUnconfined) GTEST_SKIP() << "this kernel or build cannot confine fully";
    EXPECT_EQ(WEXITSTATUS(status), code);
  }
};

TEST_F(ProgramConfinementTest, ChangesItsFolderOnly) {
  expect_program(kCould, [&] {
    return can_open("own/new", O_WRONLY | O_CREAT) && ::mkdir((folder_ / "own/folder").c_str(), 0700) == 0 &&
           ::rename((folder_ / "own/new").c_str(), (folder_ / "own/folder/newer").c_str()) == 0 &&
           ::unlink((folder_ / "own/folder/newer").c_str()) == 0;
  });
  expect_program(kCould, [&] { return can_open("model/model.onnx", O_RDONLY); });
  expect_program(kCouldNot, [&] { return can_open("model/model.onnx", O_RDWR); });
  expect_program(kCouldNot, [&] { return can_open("model/new", O_WRONLY | O_CREAT); });
  expect_program(kCouldNot, [&] { return can_open("secret", O_RDONLY); });
}

TEST_F(ProgramConfinementTest, ExecutesWhatIsNamed) {
  const auto executes = [] {
    ::execl("/bin/true", "true", nullptr);
    return false;
  };
  const std::filesystem::path loader = "/lib64/ld-linux-x86-64.so.2";
  if (!std::filesystem::exists(loader)) GTEST_SKIP() << "the dynamic loader is elsewhere";
  expect_program(kCould, executes, {.executable = {"/bin/true", loader}});
  expect_program(kCouldNot, executes, {.executable = {"/bin/false", loader}});
}

class KernelProgramTest : public ProgramConfinementTest, public testing::WithParamInterface<int> {};

// Without Landlock it reads and executes what its user may, and writes nothing, not even in its own folder.
TEST_P(KernelProgramTest, WithoutLandlockItReadsAndExecutesMoreAndWritesNothing) {
  const ProgramConfinement confinement{.kernel = {.landlock = GetParam()}};
  const int more = GetParam() == 0 ? kCould : kCouldNot;
  expect_program(
      kCould, [&] { return can_open("model/model.onnx", O_RDONLY); }, confinement);
  expect_program(
      more, [] { return ::open("/etc/passwd", O_RDONLY) >= 0; }, confinement);
  expect_program(
      more, [] { return ::execl("/bin/true", "true", nullptr) == 0; }, confinement);
  expect_program(
      GetParam() == 0 ? kCouldNot : kCould, [&] { return can_open("own/new", O_WRONLY | O_CREAT); }, confinement);
  for (const char* file : {"model/model.onnx", "secret"}) {
    expect_program(
        kCouldNot, [&] { return can_open(file, O_WRONLY); }, confinement);
    expect_program(
        kCouldNot, [&] { return can_open(file, O_RDONLY | O_TRUNC); }, confinement);
  }
}

INSTANTIATE_TEST_SUITE_P(Landlock, KernelProgramTest, testing::Values(0, 1, 3, 6));

TEST_F(ProgramConfinementTest, DevicesAreWritten) {
  const auto writes = [] { return ::open("/dev/null", O_WRONLY) >= 0; };
  expect_program(kCould, writes, {.devices = {"/dev/null"}});
  expect_program(kCouldNot, writes);
}

TEST_F(ProgramConfinementTest, DriversOfNamedDevicesGetRequests) {
  // /dev/null's driver knows no request, and says so once one reaches it.
  const auto requests = [] { return ::ioctl(::open("/dev/null", O_RDWR), _IO('F', 1)) != 0 && errno == ENOTTY; };
  expect_program(kCould, requests, {.controlled = {"/dev/null"}});
  expect_program(kCouldNot, requests, {.devices = {"/dev/null"}});
}

// As CUDA's library does.
TEST_F(ProgramConfinementTest, WithNamedDevicesItListensButDoesNotConnect) {
  constexpr int type = SOCK_SEQPACKET | SOCK_CLOEXEC;
  const auto listens = [] {
    const sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
    const int socket = ::socket(AF_UNIX, type, 0);
    return ::bind(socket, reinterpret_cast<const sockaddr*>(&name), sizeof(sa_family_t)) == 0 &&
           ::listen(socket, 1) == 0;
  };
  const auto connects = [] {
    const sockaddr_un name{.sun_family = AF_UNIX, .sun_path = "/no/such/server"};
    return ::connect(::socket(AF_UNIX, type, 0), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0 ||
           errno != EPERM;
  };
  expect_program(kCould, listens, {.controlled = {"/dev/null"}});
  expect_program(kCouldNot, connects, {.controlled = {"/dev/null"}});
  expect_program(kCouldNot, [] { return ::socket(AF_UNIX, SOCK_STREAM, 0) >= 0; }, {.controlled = {"/dev/null"}});
  expect_program(kCouldNot, listens, {.devices = {"/dev/null"}});
}

TEST_F(ProgramConfinementTest, HasNoOtherProcessAndANetworkIfItMay) {
  const auto connects = [] { return ::socket(AF_INET, SOCK_STREAM, 0) >= 0; };
  expect_program(kCould, connects, {.network = true});
  expect_program(kCouldNot, connects);
  expect_program(kCouldNot, [] { return ::socket(AF_UNIX, SOCK_STREAM, 0) >= 0; }, {.network = true});
  expect_program(kCouldNot, [] { return ::fork() >= 0; });
  expect_program(kCouldNot, [] { return ::kill(::getppid(), 0) == 0; });
  expect_program(kCouldNot, [] { return ::memfd_create("memory", 0) >= 0; });
  expect_program(kCould, [] {
    bool ran = false;
    std::thread([&] { ran = true; }).join();
    return ran;
  });
}

// Addresses, of which frameworks reserve many times what they use, are not limited.
TEST_F(ProgramConfinementTest, KeepsToItsMemory) {
  const auto maps = [](int protection) {
    return ::mmap(nullptr, size_t{1} << 30, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
  };
  const ProgramConfinement confinement{.memory_bytes = uint64_t{256} << 20};
  expect_program(
      kCouldNot, [&] { return maps(PROT_READ | PROT_WRITE); }, confinement);
  expect_program(
      kCould, [&] { return maps(PROT_NONE); }, confinement);
  expect_program(kCould, [&] { return maps(PROT_READ | PROT_WRITE); });
}

// ---- Call by call

// A process that sleeps, and a file that is readable, of which nothing may change.
class CallTest : public ProgramConfinementTest, public testing::WithParamInterface<const char*> {
 protected:
  struct Call {
    const char* name;
    std::function<long()> make;  // below 0 with errno, as of a system call
  };

  CallTest() {
    file_ = folder_ / "model/model.onnx";
    ::chmod(file_.c_str(), 0640);
    sleeper_ = ::fork();
    if (sleeper_ == 0) {
      while (true) ::pause();
    }
  }
  ~CallTest() override {
    ::kill(sleeper_, SIGKILL);
    ::waitpid(sleeper_, nullptr, 0);
  }

  // What can be seen of both.
  std::string state() const {
    struct stat file {};
    EXPECT_EQ(::stat(file_.c_str(), &file), 0);
    cpu_set_t cores;
    EXPECT_EQ(::sched_getaffinity(sleeper_, sizeof cores, &cores), 0);
    rlimit files{};
    EXPECT_EQ(::prlimit(sleeper_, RLIMIT_NOFILE, nullptr, &files), 0);
    std::string text;
    for (const auto value : {static_cast<uint64_t>(file.st_mode), static_cast<uint64_t>(file.st_uid),
                             static_cast<uint64_t>(file.st_gid), static_cast<uint64_t>(file.st_size),
                             static_cast<uint64_t>(file.st_nlink), static_cast<uint64_t>(file.st_mtim.tv_sec),
                             static_cast<uint64_t>(file.st_mtim.tv_nsec), static_cast<uint64_t>(file.st_ctim.tv_nsec),
                             static_cast<uint64_t>(CPU_COUNT(&cores)), static_cast<uint64_t>(files.rlim_cur),
                             static_cast<uint64_t>(::getpriority(PRIO_PROCESS, static_cast<id_t>(sleeper_))),
                             static_cast<uint64_t>(::sched_getscheduler(sleeper_)),
                             static_cast<uint64_t>(::waitpid(sleeper_, nullptr, WNOHANG))}) {
      text += std::to_string(value) + " ";
    }
    return text;
  }

  // Makes each in a process that is confined as on this kernel, and expects `error`.
  void expect_refused(const std::vector<Call>& calls, const KernelLimits& kernel, bool has_device = false) {
    const std::string before = state();
    for (const Call& call : calls) {
      const int status = try_calls(call, kernel, has_device);
      ASSERT_TRUE(WIFEXITED(status)) << call.name;
      if (WEXITSTATUS(status) == kUnconfined) GTEST_SKIP() << "this kernel or build cannot confine fully";
      EXPECT_EQ(WEXITSTATUS(status), kCouldNot) << call.name;
    }
    EXPECT_EQ(state(), before);
  }
  int try_calls(const Call& call, const KernelLimits& kernel, bool has_device) {
    ProgramConfinement confinement{.readable = {folder_ / "model"}, .changeable = {folder_ / "own"}, .kernel = kernel};
    if (has_device) confinement.controlled = {"/dev/null"};
    std::filesystem::create_directories(folder_ / "own");
    const pid_t child = ::fork();
    if (child == 0) {
      const auto unconfined = confine_program(confinement);
      if (!unconfined.ok()) ::_exit(kNotConfined);
      if (lacks_more_than_asked(*unconfined, kernel)) ::_exit(kUnconfined);
      const bool could = call.make() >= 0;
      ::_exit(could || (errno != EPERM && errno != EACCES && errno != ENOSYS) ? kCould : kCouldNot);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
  }
  int opened() const { return ::open(file_.c_str(), O_RDONLY); }

  std::filesystem::path file_;
  pid_t sleeper_ = 0;
  std::array<int, 2> sockets_{};
};

TEST_P(CallTest, OfFilesOfOthersNothingIsChanged) {
  const char* file = file_.c_str();
  const std::string other = folder_ / "model/other";
  const std::array<timespec, 2> times{};
  expect_refused(
      {
          {"chmod", [&] { return ::chmod(file, 0777); }},
          {"fchmod", [&] { return ::fchmod(opened(), 0777); }},
          {"fchmodat", [&] { return ::fchmodat(AT_FDCWD, file, 0777, 0); }},
          {"fchmodat2", [&] { return ::syscall(452, AT_FDCWD, file, 0777, 0); }},
          {"utimensat", [&] { return ::utimensat(AT_FDCWD, file, times.data(), 0); }},
          {"futimens", [&] { return ::futimens(opened(), times.data()); }},
          {"utimes", [&] { return ::syscall(SYS_utimensat, AT_FDCWD, file, nullptr, 0); }},
          {"chown", [&] { return ::chown(file, ::getuid(), ::getgid()); }},
          {"fchown", [&] { return ::fchown(opened(), ::getuid(), ::getgid()); }},
          {"lchown", [&] { return ::lchown(file, ::getuid(), ::getgid()); }},
          {"setxattr", [&] { return ::syscall(SYS_setxattr, file, "user.x", "x", 1, 0); }},
          {"fsetxattr", [&] { return ::syscall(SYS_fsetxattr, opened(), "user.x", "x", 1, 0); }},
          {"removexattr", [&] { return ::syscall(SYS_removexattr, file, "user.x"); }},
          {"truncate", [&] { return ::truncate(file, 0); }},
          {"open to truncate", [&] { return ::open(file, O_RDONLY | O_TRUNC); }},
          {"open to write", [&] { return ::open(file, O_WRONLY); }},
          {"open2", [&] { return ::syscall(SYS_openat2, AT_FDCWD, file, nullptr, 0); }},
          {"unlink", [&] { return ::unlink(file); }},
          {"rename", [&] { return ::rename(file, other.c_str()); }},
          {"link", [&] { return ::link(file, other.c_str()); }},
          {"symlink", [&] { return ::symlink(file, other.c_str()); }},
          {"mkdir", [&] { return ::mkdir(other.c_str(), 0700); }},
          {"rmdir", [&] { return ::rmdir((folder_ / "model/below").c_str()); }},
          {"mknod", [&] { return ::mknod(other.c_str(), S_IFIFO | 0600, 0); }},
          {"a lease", [&] { return ::fcntl(opened(), F_SETLEASE, F_RDLCK); }},
          {"inotify_init1", [] { return ::syscall(SYS_inotify_init1, 0); }},
          {"open_by_handle_at", [&] { return ::syscall(SYS_open_by_handle_at, AT_FDCWD, nullptr, O_RDONLY); }},
          {"mount", [] { return ::syscall(SYS_mount, "none", "/", nullptr, 0, nullptr); }},
      },
      parse_kernel_limits(GetParam()).value());
  EXPECT_FALSE(std::filesystem::exists(other));
}

TEST_P(CallTest, ProcessesOfOthersAreNotReached) {
  const pid_t other = sleeper_;
  const auto call = [](long number, auto... arguments) { return [=] { return ::syscall(number, arguments...); }; };
  static std::array<uint64_t, 16> memory{};
  memory[0] = 1;
  void* const some = memory.data();
  const int ours = ::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets_.data()) == 0 ? sockets_[0] : -1;
  expect_refused(
      {
          {"kill", call(SYS_kill, other, 0)},
          {"kill of a group", call(SYS_kill, -other, 0)},
          {"kill of all", call(SYS_kill, -1, 0)},
          {"tkill", call(SYS_tkill, other, 0)},
          {"tgkill", call(SYS_tgkill, other, other, 0)},
          {"rt_sigqueueinfo", call(SYS_rt_sigqueueinfo, other, 0, some)},
          {"rt_tgsigqueueinfo", call(SYS_rt_tgsigqueueinfo, other, other, 0, some)},
          {"pidfd_open", call(SYS_pidfd_open, other, 0)},
          {"pidfd_send_signal", call(SYS_pidfd_send_signal, 0, 0, nullptr, 0)},
          {"pidfd_getfd", call(SYS_pidfd_getfd, 0, 0, 0)},
          {"process_vm_readv", call(SYS_process_vm_readv, other, some, 0, some, 0, 0)},
          {"process_vm_writev", call(SYS_process_vm_writev, other, some, 0, some, 0, 0)},
          {"process_madvise", call(440, 0, some, 0, 0, 0)},
          {"ptrace", call(SYS_ptrace, 0x4206 /* PTRACE_SEIZE */, other, nullptr, nullptr)},
          {"prlimit64", call(SYS_prlimit64, other, RLIMIT_NOFILE, nullptr, some)},
          {"sched_setaffinity", call(SYS_sched_setaffinity, other, 8, some)},
          {"sched_setscheduler", call(SYS_sched_setscheduler, other, SCHED_IDLE, some)},
          {"sched_setparam", call(SYS_sched_setparam, other, some)},
          {"sched_setattr", call(SYS_sched_setattr, other, some, 0)},
          {"setpriority", call(SYS_setpriority, PRIO_PROCESS, other, 19)},
          {"ioprio_set", call(SYS_ioprio_set, 1, other, 3 << 13)},
          {"setpgid", call(SYS_setpgid, other, other)},
          {"kcmp", call(SYS_kcmp, other, other, 0, 0, 0)},
          {"get_robust_list", call(SYS_get_robust_list, other, some, some)},
          {"move_pages", call(SYS_move_pages, other, 0, nullptr, nullptr, nullptr, 0)},
          {"migrate_pages", call(SYS_migrate_pages, other, 8, some, some)},
          {"perf_event_open", call(SYS_perf_event_open, some, other, -1, -1, 0)},
          {"an owner of a descriptor", call(SYS_fcntl, ours, F_SETOWN, other)},
          {"an owner of a descriptor, by its kind", call(SYS_fcntl, ours, 15 /* F_SETOWN_EX */, some)},
          {"a signal of a descriptor", call(SYS_fcntl, ours, 10 /* F_SETSIG */, SIGUSR1)},
          {"signals of a descriptor", call(SYS_fcntl, ours, F_SETFL, O_ASYNC)},
          {"an owner of a socket", call(SYS_ioctl, ours, 0x8901 /* FIOSETOWN */, some)},
          {"a group of a socket", call(SYS_ioctl, ours, 0x8902 /* SIOCSPGRP */, some)},
          {"io_uring_setup", call(SYS_io_uring_setup, 1, some)},
          {"userfaultfd", call(SYS_userfaultfd, 1)},
          {"bpf", call(SYS_bpf, 0, nullptr, 0)},
          {"keyctl", call(SYS_keyctl, 0, 0, 0, 0, 0)},
          {"shmget", call(SYS_shmget, 1, 4096, 0600 | 01000)},
          {"mq_open", call(SYS_mq_open, "name", O_RDWR | O_CREAT, 0600, nullptr)},
          {"unshare", call(SYS_unshare, CLONE_NEWUSER)},
          {"setns", call(SYS_setns, 0, 0)},
          {"clone into a namespace", call(SYS_clone, CLONE_NEWUSER | SIGCHLD, nullptr, nullptr, nullptr, nullptr)},
          {"clone3", call(SYS_clone3, some, 0)},
          {"datagrams to any name", call(SYS_socketpair, AF_UNIX, SOCK_DGRAM, 0, some)},
          {"a netlink socket", call(SYS_socket, 16, SOCK_RAW, 0)},
          {"a packet socket", call(SYS_socket, 17, SOCK_RAW, 0)},
      },
      parse_kernel_limits(GetParam()).value());
  ::close(sockets_[0]);
  ::close(sockets_[1]);
}

// Requests to sockets are no requests to devices.
TEST_P(CallTest, WithADeviceSocketsStillHaveNoOwners) {
  const int ours = ::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets_.data()) == 0 ? sockets_[0] : -1;
  int owner = sleeper_;
  expect_refused({{"an owner", [&] { return ::ioctl(ours, 0x8901, &owner); }},
                  {"a group", [&] { return ::ioctl(ours, 0x8902, &owner); }}},
                 parse_kernel_limits(GetParam()).value(), true);
  ::close(sockets_[0]);
  ::close(sockets_[1]);
}

INSTANTIATE_TEST_SUITE_P(Kernels, CallTest,
                         testing::Values("landlock=0", "landlock=1", "landlock=3", "landlock=6", ""));

TEST_F(ProgramConfinementTest, DescriptorsAreCopiedAndLocked) {
  expect_program(kCould, [&] {
    const int file = ::open((folder_ / "own/file").c_str(), O_RDWR | O_CREAT, 0600);
    flock lock{};
    lock.l_type = F_WRLCK;
    return ::fcntl(file, F_DUPFD_CLOEXEC, 10) >= 10 && ::fcntl(file, F_GETFL) >= 0 &&
           ::fcntl(file, F_SETFL, O_NONBLOCK) == 0 && ::fcntl(file, F_SETLK, &lock) == 0 &&
           ::fcntl(file, F_SETFD, FD_CLOEXEC) == 0 && ::ftruncate(file, 10) == 0;
  });
}

TEST_F(ProgramConfinementTest, SetsItsOwnAffinity) {
  cpu_set_t cores;
  ASSERT_EQ(::sched_getaffinity(0, sizeof cores, &cores), 0);
  expect_program(kCould, [&] { return ::sched_setaffinity(0, sizeof cores, &cores) == 0; });
}

// On kernels that do not know its truncation, a file of its own is still written anew.
TEST_F(ProgramConfinementTest, TruncatesItsOwnFiles) {
  for (const char* kernel : {"landlock=1", "landlock=2", ""}) {
    expect_program(kCould,
                   [&] {
                     return can_open("own/file", O_WRONLY | O_CREAT | O_TRUNC) &&
                            can_open("own/file", O_RDWR | O_TRUNC) && can_open("model/model.onnx", O_RDONLY);
                   },
                   {.kernel = parse_kernel_limits(kernel).value()});
  }
}

// Files of /proc stay what they are as long as they are open.
TEST_F(ProgramConfinementTest, WhatItMayReadOfProcStaysOpen) {
  const auto holds = [](const char* end) {
    for (int file = 3; file < 64; ++file) {
      std::array<char, 64> name{};
      if (::readlink(("/proc/self/fd/" + std::to_string(file)).c_str(), name.data(), name.size() - 1) > 0 &&
          std::string(name.data()).ends_with(end)) {
        return true;
      }
    }
    return false;
  };
  expect_program(kCould, [&] { return holds("/statm"); }, {.readable = {"/proc/self/statm"}});
  expect_program(kCouldNot, [&] { return holds("/statm"); });
}

TEST_F(ProgramConfinementTest, OfAListedFolderItSeesTheNames) {
  const auto lists = [&] { return can_open("listed", O_RDONLY | O_DIRECTORY); };
  std::filesystem::create_directories(folder_ / "listed");
  std::ofstream(folder_ / "listed/file") << "x";
  expect_program(kCould, lists, {.listed = {folder_ / "listed"}});
  expect_program(kCouldNot, lists);
  expect_program(kCouldNot, [&] { return can_open("listed/file", O_RDONLY); }, {.listed = {folder_ / "listed"}});
}

// Its files are then its own, and of others' it changes nothing.
TEST_F(ProgramConfinementTest, RootBecomesAUserOfItsOwn) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  cpu_set_t cores;
  ASSERT_EQ(::sched_getaffinity(0, sizeof cores, &cores), 0);
  expect_program(kCould,
                 [&] {
                   const uid_t id = ::getuid();
                   return id != 0 && can_open("own/file", O_WRONLY | O_CREAT) &&
                          can_open("model/model.onnx", O_RDONLY) &&
                          ::chmod((folder_ / "own/file").c_str(), 0640) == 0 &&
                          ::chmod((folder_ / "model/model.onnx").c_str(), 0777) != 0 &&
                          ::chmod(folder_.c_str(), 0777) != 0 &&
                          ::sched_setaffinity(::getppid(), sizeof cores, &cores) != 0;
                 },
                 {.own_id = true});
  expect_program(kCould, [] { return ::getuid() == 0; }, {.own_id = true, .kernel = {.ids = false}});
}

TEST(KernelLimitsTest, AreReadAsTheyWereWritten) {
  for (const char* text : {"", "landlock=3", "namespaces=no,ids=no", "landlock=0,namespaces=no,ids=no"}) {
    const auto limits = parse_kernel_limits(text);
    ASSERT_TRUE(limits.ok()) << text;
    EXPECT_EQ(to_string(*limits), text);
  }
  for (const char* wrong : {"landlock", "landlock=-1", "landlock=x", "namespaces=yes", "landlock=3, ids=no"}) {
    EXPECT_FALSE(parse_kernel_limits(wrong).ok()) << wrong;
  }
}

TEST_F(ProgramConfinementTest, AFolderThatIsNotThereIsNamed) {
  const int status = try_program([] { return true; }, {.readable = {folder_ / "absent"}});
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_NE(WEXITSTATUS(status), kCould);
}

}  // namespace
}  // namespace foliot
