#include "foundation/process/fork_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>

namespace foliot {
namespace {

constexpr const char* kStandsBy = "FOLIOT_TEST_STANDS_BY=1";

// This program as the server's process, whose copies are shells that read their script
// from the standard input.
const bool stands_by = [] {
  if (std::getenv("FOLIOT_TEST_STANDS_BY") == nullptr) return false;
  serve_forks();
  ::execl("/bin/sh", "sh", nullptr);
  ::_exit(127);
}();

struct ForkedOutput {
  std::string said;
  std::string complained;
};

class ForkServerTest : public testing::Test {
 protected:
  ForkServerTest() {
    EXPECT_FALSE(stands_by);
    Result<ForkServer> started = ForkServer::start({"/proc/self/exe"}, {kStandsBy});
    EXPECT_TRUE(started.ok()) << started.status().message();
    if (started.ok()) server_.emplace(std::move(started).value());
  }
  static ForkedOutput listen_to_the_end(ChildProcess& child) {
    ForkedOutput output;
    while (child.listen(Duration::seconds(10), output.said, output.complained)) {
    }
    return output;
  }

  std::optional<ForkServer> server_;
};

TEST_F(ForkServerTest, EachJobHasItsOwnCopy) {
  for (const std::string word : {"one", "two"}) {
    Result<ChildProcess> child = server_->fork("echo " + word + "; echo oh >&2; left=" + word + "; echo $left", -1);
    ASSERT_TRUE(child.ok()) << child.status().message();
    const ForkedOutput output = listen_to_the_end(*child);
    EXPECT_EQ(output.said, word + "\n" + word + "\n");
    EXPECT_EQ(output.complained, "oh\n");
    EXPECT_TRUE(child->succeeded());
  }
}

TEST_F(ForkServerTest, ReportsHowACopyEnded) {
  Result<ChildProcess> leaving = server_->fork("exit 3", -1);
  ASSERT_TRUE(leaving.ok());
  listen_to_the_end(*leaving);
  EXPECT_EQ(leaving->ending(), "exit code 3");

  Result<ChildProcess> crashing = server_->fork("kill -SEGV $$", -1);
  ASSERT_TRUE(crashing.ok());
  listen_to_the_end(*crashing);
  EXPECT_EQ(crashing->signal(), SIGSEGV);
}

TEST_F(ForkServerTest, ACopyIsKilled) {
  Result<ChildProcess> child = server_->fork("exec sleep 1000", -1);
  ASSERT_TRUE(child.ok());
  child->kill();
  listen_to_the_end(*child);
  EXPECT_EQ(child->signal(), SIGKILL);
}

TEST_F(ForkServerTest, ACopyEndsWithItsOwner) {
  { ASSERT_TRUE(server_->fork("exec sleep 1000", -1).ok()); }
  Result<ChildProcess> next = server_->fork("echo next", -1);
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(listen_to_the_end(*next).said, "next\n");
}

TEST_F(ForkServerTest, ACopyHasNoDescriptorButThoseNamed) {
  const Descriptor secret(::open("/dev/null", O_RDONLY));  // not closed by exec
  const Descriptor output(::memfd_create("output", MFD_CLOEXEC));
  Result<ChildProcess> child = server_->fork("echo done >&3; ls /proc/$$/fd; true", output.number());
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(listen_to_the_end(*child).said, "0\n1\n2\n3\n");
  std::array<char, 8> text{};
  EXPECT_EQ(::pread(output.number(), text.data(), text.size(), 0), 5);
  EXPECT_STREQ(text.data(), "done\n");

  Result<ChildProcess> without = server_->fork("ls /proc/$$/fd; true", -1);
  ASSERT_TRUE(without.ok());
  EXPECT_EQ(listen_to_the_end(*without).said, "0\n1\n2\n");
}

TEST_F(ForkServerTest, OneThatIsGoneIsAnError) {
  {
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
    const Descriptor waits(pipe[0]), begins(pipe[1]);
    Result<ChildProcess> child = server_->fork("read begin <&3; kill -KILL $PPID", waits.number());
    ASSERT_TRUE(child.ok());
    ASSERT_EQ(::write(begins.number(), "\n", 1), 1);
    listen_to_the_end(*child);
    EXPECT_EQ(child->signal(), SIGKILL);
  }
  EXPECT_EQ(server_->fork("echo", -1).status().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace foliot
