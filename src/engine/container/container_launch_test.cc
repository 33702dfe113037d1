#include "engine/container/container_launch.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "engine/container/confinement_probe.h"
#include "engine/container/container_process.h"
#include "foundation/platform/thread.h"
#include "foundation/platform/topology.h"

namespace foliot {
namespace {

constexpr const char* kLaunches = "FOLIOT_TEST_LAUNCHES";

// Before main(): this program as the launcher.
[[maybe_unused]] const bool is_launcher = [] {
  if (std::getenv(kLaunches) != nullptr) ::_exit(launch_container());
  return false;
}();

// A package `foliot` of the standard library only. A call evaluates what the folder's
// expression.txt has, and answers with its value as an error.
constexpr const char* kRuntime = R"(
import ctypes, mmap, os, socket, subprocess, sys, threading, time
s = socket.socket(fileno=3)
s.send(b'D{"protocol": 1, "inputs": [{"name": "x", "datatype": "UINT8", "shape": []}],'
       b'"outputs": [{"name": "y", "datatype": "UINT8", "shape": []}]}')
def could(what):
    try:
        what()
    except Exception as error:
        return type(error).__name__
    return "could"
def wrote(path):
    with open(path, "w") as f:
        f.write("x")
while True:
    packet = s.recv(64)
    if not packet:
        sys.exit(0)
    if packet[:1] == b"M":
        s.send(b"R")
        continue
    try:
        answer = str(eval(open(os.path.join(sys.argv[1], "expression.txt")).read()))
    except BaseException as error:
        answer = "raised " + repr(error)
    s.send(b"E" + answer.encode()[:4000])
)";

// Of a process's first thread, in ns; 0 where the kernel does not say.
uint64_t slice_of(int process) {
  std::array<uint64_t, 6> attributes{};  // sched_getattr(2)'s; the fourth is the slice
  EXPECT_EQ(syscall(SYS_sched_getattr, process, attributes.data(), sizeof(attributes), 0), 0);
  return attributes[3];
}

class ContainerLaunchTest : public testing::Test {
 protected:
  ContainerLaunchTest() {
    std::string name = testing::TempDir() + "foliot_launch_XXXXXX";
    folder_ = ::mkdtemp(name.data());
    std::filesystem::create_directories(folder_ / "model");
    std::filesystem::create_directories(folder_ / "package/foliot");
    std::ofstream(folder_ / "package/foliot/__init__.py") << "";
    std::ofstream(folder_ / "package/foliot/runtime.py") << kRuntime;
    std::ofstream(folder_ / "secret") << "x";
    options_ = {.name = "test",
                .folder = folder_ / "model",
                .package = folder_ / "package",
                .launcher = {"/proc/self/exe"},
                .environment = {std::string(kLaunches) + "=1"}};
  }
  ~ContainerLaunchTest() override { std::filesystem::remove_all(folder_); }

  Status start() {
    auto process = ContainerProcess::start(options_, [this](std::string_view line) { lines_.emplace_back(line); });
    if (!process.ok()) return process.status();
    process_ = std::move(process).value();
    return process_->share_memory(4096);
  }
  // What the container makes of this expression.
  std::string evaluated(const std::string& expression) {
    std::ofstream(folder_ / "model/expression.txt") << expression;
    const Status status = process_->call_listening(1, 0, 64, Duration::seconds(60));
    if (!process_->alive()) {
      while (process_->listen(Duration::seconds(1))) {
      }
      return process_->ending();
    }
    return status.message();
  }
  bool is_confined() {
    for (const std::string& line : lines_) {
      const bool is_less = line.find("not fully confined") != std::string::npos;
      if (is_less && line.find("no namespaces") == std::string::npos) return false;
    }
    return true;
  }

  std::filesystem::path folder_;
  ContainerOptions options_;
  std::vector<std::string> lines_;
  std::unique_ptr<ContainerProcess> process_;
};

#define NAMESPACES_OR_SKIP() \
  if (evaluated("os.getpid()") != "1") GTEST_SKIP() << "this machine allows no namespaces"

#define START_OR_SKIP()                                                     \
  do {                                                                      \
    const Status started = start();                                         \
    ASSERT_TRUE(started.ok()) << started.message();                         \
    if (!is_confined()) GTEST_SKIP() << "this kernel cannot confine fully"; \
  } while (false)

TEST_F(ContainerLaunchTest, RunsTheInterpreterInItsFolder) {
  const Status started = start();
  ASSERT_TRUE(started.ok()) << started.message();
  EXPECT_EQ(evaluated("6 * 7"), "42");
  EXPECT_EQ(evaluated("os.getcwd()"), (folder_ / "model").string());
  EXPECT_EQ(evaluated("os.environ['FOLIOT_CONTAINER'] + os.environ['OMP_NUM_THREADS']"), "test1");
  EXPECT_EQ(evaluated("sys.stdin.read()"), "");
}

TEST_F(ContainerLaunchTest, ReadsItsFoldersAndNothingElse) {
  options_.readable = {folder_ / "data"};
  std::filesystem::create_directories(folder_ / "data");
  std::ofstream(folder_ / "data/file") << "x";
  START_OR_SKIP();
  const std::string top = folder_.string();
  EXPECT_EQ(evaluated("could(lambda: open('" + top + "/data/file'))"), "could");
  EXPECT_EQ(evaluated("could(lambda: open('expression.txt'))"), "could");
  for (const std::string& file : {top + "/secret", std::string("/etc/passwd"), std::string("/proc/2/environ")}) {
    EXPECT_NE(evaluated("could(lambda: open('" + file + "'))"), "could") << file;
  }
  EXPECT_EQ(evaluated("could(lambda: os.listdir('" + top + "'))"), "PermissionError");
}

TEST_F(ContainerLaunchTest, WritesItsFolderForTemporaryFilesOnly) {
  START_OR_SKIP();
  EXPECT_EQ(evaluated("could(lambda: wrote(os.environ['TMPDIR'] + '/new'))"), "could");
  EXPECT_EQ(evaluated("could(lambda: wrote('/dev/null'))"), "could");
  for (const char* file : {"new", "expression.txt", "/dev/shm/foliot-test", "/tmp/foliot-test"}) {
    EXPECT_NE(evaluated("could(lambda: wrote('" + std::string(file) + "'))"), "could") << file;
  }
  EXPECT_EQ(evaluated("open(os.environ['TMPDIR'] + '/new').read()"), "x");
  const std::filesystem::path temporary = evaluated("os.environ['TMPDIR']");
  EXPECT_TRUE(std::filesystem::exists(temporary));
  process_.reset();
  EXPECT_FALSE(std::filesystem::exists(temporary));
}

TEST_F(ContainerLaunchTest, HasNoNetworkAndNoOtherProcess) {
  START_OR_SKIP();
  EXPECT_EQ(evaluated("could(lambda: socket.socket())"), "PermissionError");
  EXPECT_EQ(evaluated("could(lambda: socket.socket(socket.AF_UNIX))"), "PermissionError");
  EXPECT_EQ(evaluated("could(lambda: socket.socketpair())"), "could");
  EXPECT_EQ(evaluated("could(os.fork)"), "PermissionError");
  EXPECT_EQ(evaluated("could(lambda: subprocess.run(['/bin/true']))"), "PermissionError");
  EXPECT_EQ(evaluated("could(lambda: os.execv('/bin/true', ['true']))"), "PermissionError");
  EXPECT_EQ(evaluated("could(lambda: os.kill(os.getppid(), 0))"), "PermissionError");
  EXPECT_EQ(evaluated("could(lambda: os.memfd_create('x'))"), "PermissionError");
  EXPECT_EQ(evaluated("[l.split()[1] for l in open('/proc/self/status') if l.startswith('NoNewPrivs')]"), "['1']");
  // At most to read files, where Landlock limits which.
  EXPECT_EQ(evaluated("[hex(int(l.split()[1], 16) & ~4) for l in open('/proc/self/status') if l.startswith('CapEff')]"),
            "['0x0']");
}

TEST_F(ContainerLaunchTest, MayHaveNetworkIfAsked) {
  options_.network = true;
  START_OR_SKIP();
  EXPECT_EQ(evaluated("could(lambda: socket.create_server(('127.0.0.1', 0)))"), "could");
  EXPECT_EQ(evaluated("could(lambda: socket.socket(socket.AF_UNIX))"), "PermissionError");
}

TEST_F(ContainerLaunchTest, SeesNoConnectionsMountsAndProcessesOfOthers) {
  START_OR_SKIP();
  for (const char* file : {"self/mounts", "self/mountinfo", "self/net/tcp", "self/net/unix", "net/tcp", "mounts",
                           "thread-self/mounts", "thread-self/net/tcp", "1/environ"}) {
    const std::string opens = "could(lambda: open('/proc/" + std::string(file) + "'))";
    EXPECT_EQ(evaluated(opens),
              file == std::string("1/environ") && evaluated("os.getpid()") == "1" ? "could" : "PermissionError")
        << file;
  }
  EXPECT_EQ(evaluated("could(lambda: os.listdir('/proc'))"), "PermissionError");
  EXPECT_EQ(evaluated("could(lambda: os.listdir('/proc/self/task'))"), "could");
  EXPECT_EQ(evaluated("could(lambda: os.listdir('/proc/self/fd'))"), "could");
  for (const char* file : {"status", "maps", "statm", "cgroup", "limits"}) {
    EXPECT_EQ(evaluated("could(lambda: open('/proc/self/" + std::string(file) + "').read())"), "could") << file;
  }
}

TEST_F(ContainerLaunchTest, InNamespacesItIsAlone) {
  START_OR_SKIP();
  NAMESPACES_OR_SKIP();
  EXPECT_EQ(evaluated("could(lambda: os.kill(2, 0))"), "PermissionError");
  // Its number in each of its PID namespaces: of /proc of the machine there would be two.
  EXPECT_EQ(evaluated("[l.split()[1:] for l in open('/proc/self/status') if l.startswith('NSpid')]"), "[['1']]");
}

// Of files outside nothing; of its own what it likes.
TEST_F(ContainerLaunchTest, InNamespacesItChangesModesAndTimesOfItsOwnFiles) {
  START_OR_SKIP();
  NAMESPACES_OR_SKIP();
  evaluated("wrote(os.environ['TMPDIR'] + '/own')");
  EXPECT_EQ(evaluated("could(lambda: os.chmod(os.environ['TMPDIR'] + '/own', 0o640))"), "could");
  EXPECT_EQ(evaluated("could(lambda: os.utime(os.environ['TMPDIR'] + '/own', (1, 1)))"), "could");
  EXPECT_EQ(evaluated("oct(os.stat(os.environ['TMPDIR'] + '/own').st_mode)"), "0o100640");
  EXPECT_EQ(evaluated("could(lambda: os.sched_setaffinity(threading.get_native_id(), os.sched_getaffinity(0)))"),
            "could");
}

class LesserKernelTest : public ContainerLaunchTest, public testing::WithParamInterface<const char*> {};

TEST_P(LesserKernelTest, FilesOutsideStayAsTheyAre) {
  options_.safety.kernel = parse_kernel_limits(GetParam()).value();
  const Status started = start();
  ASSERT_TRUE(started.ok()) << started.message();
  const std::filesystem::path file = folder_ / "model/kept";
  std::ofstream(file) << "x";
  ::chmod(file.c_str(), 0644);
  struct stat before {
  }, after{};
  ASSERT_EQ(::stat(file.c_str(), &before), 0);
  for (const char* change :
       {"os.chmod('kept', 0o777)", "os.chmod(os.open('kept', os.O_RDONLY), 0o777)", "os.utime('kept', (1, 1))",
        "os.utime(os.open('kept', os.O_RDONLY), (1, 1))", "os.utime('kept')", "os.chown('kept', -1, -1)",
        "os.truncate('kept', 0)", "os.open('kept', os.O_RDONLY | os.O_TRUNC)", "open('kept', 'w')", "os.remove('kept')",
        "os.rename('kept', 'moved')", "os.mkdir('made')", "os.symlink('kept', 'linked')",
        "os.setxattr('kept', 'user.x', b'x')", "os.chmod('/dev/null', 0o600)", "os.chmod(0, 0o600)",
        "os.sched_setaffinity(os.getppid() or 2, [0])", "os.setpriority(os.PRIO_PROCESS, os.getppid() or 2, 19)"}) {
    EXPECT_NE(evaluated("could(lambda: " + std::string(change) + ")"), "could") << change;
  }
  ASSERT_EQ(::stat(file.c_str(), &after), 0);
  EXPECT_EQ(after.st_mode, before.st_mode);
  EXPECT_EQ(after.st_size, before.st_size);
  EXPECT_EQ(after.st_ctim.tv_sec, before.st_ctim.tv_sec);
  EXPECT_EQ(after.st_ctim.tv_nsec, before.st_ctim.tv_nsec);
}

// The rows of docs/SECURITY.md's table that differ: what is open on this kernel, and what stays refused.
TEST_P(LesserKernelTest, ReadsAndSeesMoreWithoutLandlockAndWritesNothingThen) {
  options_.safety.kernel = parse_kernel_limits(GetParam()).value();
  const Status started = start();
  ASSERT_TRUE(started.ok()) << started.message();
  const bool has_landlock = options_.safety.kernel.landlock > 0;
  const auto opens = [&](const char* file) { return evaluated("could(lambda: open('" + std::string(file) + "'))"); };
  const char* const more = has_landlock ? "PermissionError" : "could";
  EXPECT_EQ(opens("/etc/passwd"), more);
  EXPECT_EQ(opens("/proc/self/mounts"), more);
  EXPECT_EQ(opens("/proc/self/net/tcp"), more);
  const std::string written = evaluated("could(lambda: wrote(os.environ['TMPDIR'] + '/new'))");
  EXPECT_EQ(written == "could", has_landlock) << written;
  for (const char* refused : {"open('/etc/passwd', 'w')", "socket.socket()", "os.fork()", "os.memfd_create('x')",
                              "os.kill(os.getppid() or 2, 0)", "os.killpg(0, 0)"}) {
    EXPECT_NE(evaluated("could(lambda: " + std::string(refused) + ")"), "could") << refused;
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, LesserKernelTest,
                         testing::Values("", "ids=no", "landlock=0", "landlock=1", "landlock=3", "landlock=6",
                                         "namespaces=no", "namespaces=no,ids=no", "landlock=0,namespaces=no,ids=no",
                                         "landlock=1,namespaces=no", "landlock=3,namespaces=no,ids=no"));

TEST_F(ContainerLaunchTest, ItsFilesTakeNoMoreDiskThanItMay) {
  options_.disk_bytes = 1 << 20;
  START_OR_SKIP();
  const auto fills = [&](int number) {
    return evaluated("could(lambda: open(os.environ['TMPDIR'] + '/" + std::to_string(number) +
                     "', 'wb').write(b'x' * 700000))");
  };
  EXPECT_EQ(evaluated("could(lambda: open(os.environ['TMPDIR'] + '/large', 'wb').write(b'x' * 2000000))"), "OSError");
  evaluated("os.remove(os.environ['TMPDIR'] + '/large')");
  EXPECT_EQ(fills(1), "could");
  NAMESPACES_OR_SKIP();
  EXPECT_EQ(fills(2), "OSError");
  EXPECT_TRUE(process_->alive());
}

TEST_F(ContainerLaunchTest, WithoutNamespacesItsFilesAreCounted) {
  options_.disk_bytes = 1 << 20;
  options_.safety.kernel.namespaces = false;
  START_OR_SKIP();
  const std::string ending = evaluated(
      "([open(os.environ['TMPDIR'] + '/' + str(i), 'wb').write(b'x' * 700000) for i in range(2)],"
      " threading.Event().wait())");
  EXPECT_NE(ending.find("its temporary files took 1.3 MiB; they may take 1.0 MiB: raise disk"), std::string::npos)
      << ending;
}

TEST_F(ContainerLaunchTest, WhatAKernelLacksIsFoundAndStrictlyRefused) {
  options_.safety.kernel = {.landlock = 0, .namespaces = false};
  const auto missing = probe_confinement(options_);
  ASSERT_TRUE(missing.ok()) << missing.status().message();
  ASSERT_GE(missing->size(), 2u);
  EXPECT_TRUE(missing->front().starts_with("no Landlock")) << missing->front();
  EXPECT_TRUE(missing->back().starts_with("no namespaces")) << missing->back();
  options_.safety.strict = true;
  const Status status = start();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("as --containers strict demands: no Landlock"), std::string::npos)
      << status.message();
}

TEST_F(ContainerLaunchTest, StrictlyConfinedItServesWhereTheKernelLacksNothing) {
  const auto missing = probe_confinement(options_);
  ASSERT_TRUE(missing.ok()) << missing.status().message();
  if (!missing->empty()) GTEST_SKIP() << "this kernel cannot confine fully: " << missing->front();
  options_.safety.strict = true;
  START_OR_SKIP();
  EXPECT_EQ(evaluated("6 * 7"), "42");
}

TEST_F(ContainerLaunchTest, MayHaveThreads) {
  START_OR_SKIP();
  EXPECT_EQ(evaluated("(lambda t: (t.start(), t.join()))(threading.Thread(target=time.time))"), "(None, None)");
}

TEST_F(ContainerLaunchTest, MemoryBeyondItsLimitIsRefused) {
  options_.memory_bytes = uint64_t{256} << 20;
  START_OR_SKIP();
  EXPECT_EQ(evaluated("len(bytearray(16 << 20))"), "16777216");
  EXPECT_EQ(evaluated("could(lambda: bytearray(512 << 20))"), "MemoryError");
  EXPECT_TRUE(process_->alive());
}

// Which RLIMIT_DATA does not count.
TEST_F(ContainerLaunchTest, SharedMemoryBeyondItsLimitEndsIt) {
  options_.memory_bytes = uint64_t{256} << 20;
  START_OR_SKIP();
  const std::string ending = evaluated(
      "(lambda m: (m.write(b'x' * (64 << 20)) and [m.write(b'x' * (1 << 20)) for i in range(440)],"
      " threading.Event().wait()))(mmap.mmap(-1, 512 << 20))");
  EXPECT_NE(ending.find("of memory; it may take 256.0 MiB"), std::string::npos) << ending;
}

// Threads that wake up beside it get the core before its slice is over, as beside any process.
TEST_F(ContainerLaunchTest, DoesNotInheritTheSlicesOfServingThreads) {
  options_.safety.kernel.namespaces = false;  // it knows its number
  const uint64_t ordinary = slice_of(0);
  ASSERT_TRUE(Thread::start({.name = "replica"}, [&] {
                const Status started = start();
                ASSERT_TRUE(started.ok()) << started.message();
                EXPECT_EQ(slice_of(std::stoi(evaluated("os.getpid()"))), ordinary);
              }).ok());
}

TEST_F(ContainerLaunchTest, RunsOnItsCores) {
  options_.cores = {read_topology()->usable().front()};
  START_OR_SKIP();
  EXPECT_EQ(evaluated("os.sched_getaffinity(0)"), "{" + to_string(options_.cores) + "}");
  options_.cores = {kCoresMax - 1};
  const Status status = start();
  EXPECT_NE(status.message().find("'cores' in [container]: core 1023 does not exist"), std::string::npos)
      << status.message();
}

TEST_F(ContainerLaunchTest, WhatCannotBeLaunchedIsNamed) {
  options_.python = "no-such-python";
  Status status = start();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("the interpreter 'no-such-python' is not in PATH"), std::string::npos)
      << status.message();
  options_.python = "/bin/false";
  status = start();
  EXPECT_NE(status.message().find("/bin/false is no Python interpreter"), std::string::npos) << status.message();
  options_.python = "python3";
  options_.readable = {"/no/such/folder"};
  status = start();
  EXPECT_NE(status.message().find("/no/such/folder"), std::string::npos) << status.message();
  options_.readable.clear();
  options_.gpus = {127};
  status = start();
  EXPECT_NE(status.message().find("'gpus' in [container] needs /dev/nvidia"), std::string::npos) << status.message();
  options_.gpus.clear();
  options_.package = folder_ / "model";
  status = start();
  EXPECT_NE(status.message().find("foliot"), std::string::npos) << status.message();
}

TEST(ContainerLaunchTextTest, IsReadAsItWasWritten) {
  const ContainerLaunch launch{.python = "python3=",
                               .folder = "/a\nb",
                               .package = "/p",
                               .temporary = "/t",
                               .readable = {"/one", "/two"},
                               .cores = {0, 2, 3},
                               .memory_bytes = uint64_t{1} << 40,
                               .disk_bytes = uint64_t{1} << 30,
                               .network = true,
                               .gpus = {0, 7},
                               .namespaces = true,
                               .safety = {.strict = true, .kernel = {.landlock = 3, .ids = false}},
                               .probes = true};
  const auto decoded = decode_launch(encode_launch(launch));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(*decoded, launch);
  for (const std::string& wrong :
       {std::string(), std::string("python=x"), std::string("pyth=x\0", 7), std::string("network=2\0", 10),
        std::string("memory_bytes=x\0", 15), std::string("gpu=-1\0", 7), std::string("kernel=x\0", 9),
        std::string("strict=2\0", 9), std::string("cores=3-1\0", 10)}) {
    EXPECT_FALSE(decode_launch(wrong).ok());
  }
}

}  // namespace
}  // namespace foliot
