#include "container/container_launch.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "container/container_process.h"
#include "platform/thread.h"
#include "platform/topology.h"

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
      if (line.find("not fully confined") != std::string::npos) return false;
    }
    return true;
  }

  std::filesystem::path folder_;
  ContainerOptions options_;
  std::vector<std::string> lines_;
  std::unique_ptr<ContainerProcess> process_;
};

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
  for (const std::string& file : {top + "/secret", std::string("/etc/passwd"), std::string("/proc/1/environ")}) {
    EXPECT_EQ(evaluated("could(lambda: open('" + file + "'))"), "PermissionError") << file;
  }
  EXPECT_EQ(evaluated("could(lambda: os.listdir('" + top + "'))"), "PermissionError");
}

TEST_F(ContainerLaunchTest, WritesItsFolderForTemporaryFilesOnly) {
  START_OR_SKIP();
  EXPECT_EQ(evaluated("could(lambda: wrote(os.environ['TMPDIR'] + '/new'))"), "could");
  EXPECT_EQ(evaluated("could(lambda: wrote('/dev/null'))"), "could");
  for (const char* file : {"new", "expression.txt", "/dev/shm/foliot-test", "/tmp/foliot-test"}) {
    EXPECT_EQ(evaluated("could(lambda: wrote('" + std::string(file) + "'))"), "PermissionError") << file;
  }
  const std::filesystem::path temporary = evaluated("os.environ['TMPDIR']");
  EXPECT_TRUE(std::filesystem::exists(temporary / "new"));
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
                               .network = true,
                               .gpus = {0, 7}};
  const auto decoded = decode_launch(encode_launch(launch));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(*decoded, launch);
  for (const std::string& wrong :
       {std::string(), std::string("python=x"), std::string("pyth=x\0", 7), std::string("network=2\0", 10),
        std::string("memory_bytes=x\0", 15), std::string("gpu=-1\0", 7), std::string("cores=3-1\0", 10)}) {
    EXPECT_FALSE(decode_launch(wrong).ok());
  }
}

}  // namespace
}  // namespace foliot
