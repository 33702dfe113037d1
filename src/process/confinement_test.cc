#include "process/confinement.h"

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

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <thread>

namespace foliot {
namespace {

// A confined function reports success by its exit code.
constexpr int kCould = 0, kCouldNot = 1, kNotConfined = 2, kUnconfined = 3;

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
      if (!unconfined->empty()) ::_exit(kUnconfined);
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
      if (!unconfined->empty()) ::_exit(kUnconfined);
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

TEST_F(ProgramConfinementTest, AFolderThatIsNotThereIsNamed) {
  const int status = try_program([] { return true; }, {.readable = {folder_ / "absent"}});
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_NE(WEXITSTATUS(status), kCould);
}

}  // namespace
}  // namespace foliot
