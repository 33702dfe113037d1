#include "foundation/process/child_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <csignal>

namespace foliot {
namespace {

struct ChildOutput {
  std::string said;
  std::string complained;
};

ChildOptions shell(const std::string& script) {
  return {.command = {"/bin/sh", "-c", script}, .environment = {"COLOUR=blue"}};
}

ChildOutput listen_to_the_end(ChildProcess& child) {
  ChildOutput output;
  while (child.listen(Duration::milliseconds(100), output.said, output.complained)) {
  }
  return output;
}

TEST(ChildProcessTest, ReadsWhatItWrites) {
  ChildOptions options = shell("read word; echo $word $COLOUR $HOME; echo oh >&2");
  options.input = "sky\n";
  Result<ChildProcess> child = ChildProcess::start(options);
  ASSERT_TRUE(child.ok()) << child.status().message();
  const ChildOutput output = listen_to_the_end(*child);
  EXPECT_EQ(output.said, "sky blue\n");
  EXPECT_EQ(output.complained, "oh\n");
  EXPECT_TRUE(child->succeeded());
}

TEST(ChildProcessTest, ReadsMoreThanAPipeHolds) {
  Result<ChildProcess> child = ChildProcess::start(shell("head -c 1000000 /dev/zero"));
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(listen_to_the_end(*child).said.size(), 1'000'000u);
}

TEST(ChildProcessTest, ReportsHowItEnded) {
  Result<ChildProcess> leaving = ChildProcess::start(shell("exit 3"));
  ASSERT_TRUE(leaving.ok());
  listen_to_the_end(*leaving);
  EXPECT_FALSE(leaving->succeeded());
  EXPECT_EQ(leaving->ending(), "exit code 3");

  Result<ChildProcess> crashing = ChildProcess::start(shell("kill -SEGV $$"));
  ASSERT_TRUE(crashing.ok());
  listen_to_the_end(*crashing);
  EXPECT_EQ(crashing->signal(), SIGSEGV);
  EXPECT_EQ(crashing->ending(), "signal 11 (Segmentation fault)");

  Result<ChildProcess> signalling = ChildProcess::start(shell("kill -40 $$"));
  ASSERT_TRUE(signalling.ok());
  listen_to_the_end(*signalling);
  EXPECT_EQ(signalling->ending(), "signal 40 (a real-time signal)");
}

TEST(ChildProcessTest, IsKilled) {
  Result<ChildProcess> child = ChildProcess::start(shell("sleep 1000"));
  ASSERT_TRUE(child.ok());
  child->kill();
  listen_to_the_end(*child);
  EXPECT_EQ(child->signal(), SIGKILL);
}

// The pipe is closed when the last process that has it is gone.
void expect_group_to_end(const std::string& script, bool kill) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const Descriptor from(pipe[0]);
  Descriptor to(pipe[1]);
  ChildOptions options = shell(script);
  options.output_file = to.number();
  Result<ChildProcess> child = ChildProcess::start(options);
  ASSERT_TRUE(child.ok());
  to.close();
  std::string said, complained;
  while (said.empty()) child->listen(Duration::seconds(100), said, complained);  // the other runs
  if (kill) child->kill();
  listen_to_the_end(*child);
  pollfd closed{from.number(), POLLIN, 0};
  EXPECT_EQ(::poll(&closed, 1, 60'000), 1);
}

TEST(ChildProcessTest, WhatItStartedEndsWithIt) {
  expect_group_to_end("sleep 1000 & echo started", false);
  expect_group_to_end("sleep 1000 & echo started; wait", true);
}

TEST(ChildProcessTest, AHandleSignalsFromAnywhere) {
  Result<ChildProcess> child = ChildProcess::start(shell("sleep 1000"));
  ASSERT_TRUE(child.ok());
  const Result<Descriptor> handle = child->handle();
  ASSERT_TRUE(handle.ok());
  EXPECT_EQ(::syscall(SYS_pidfd_send_signal, handle->number(), SIGTERM, nullptr, 0), 0);
  listen_to_the_end(*child);
  EXPECT_EQ(child->signal(), SIGTERM);
}

TEST(ChildProcessTest, ItsMemoryIsMeasured) {
  // A shell that holds 16 MB and stays what it is: a program that has only just been started has next to no memory, and
  // the kernel's count of a small process is inexact.
  Result<ChildProcess> child = ChildProcess::start(
      shell("text=$(head -c 16000000 /dev/zero | tr '\\0' x); echo started; sleep 1000; echo ${#text}"));
  ASSERT_TRUE(child.ok());
  std::string said, complained;
  while (said.empty()) child->listen(Duration::seconds(100), said, complained);
  EXPECT_GT(child->memory_bytes(), uint64_t{12} << 20);
  EXPECT_LT(child->memory_bytes(), uint64_t{128} << 20);
  child->kill();
  listen_to_the_end(*child);
  EXPECT_EQ(child->memory_bytes(), 0u);
}

TEST(ChildProcessTest, TheTimeInWhichItHadNoProcessorIsMeasured) {
  cpu_set_t all, first;
  CPU_ZERO(&first);
  ASSERT_EQ(::sched_getaffinity(0, sizeof(all), &all), 0);
  int processor = 0;
  while (!CPU_ISSET(processor, &all)) ++processor;
  CPU_SET(processor, &first);
  ASSERT_EQ(::sched_setaffinity(0, sizeof(first), &first), 0);
  Result<ChildProcess> one = ChildProcess::start(shell("while :; do :; done"));
  Result<ChildProcess> other = ChildProcess::start(shell("while :; do :; done"));
  ASSERT_EQ(::sched_setaffinity(0, sizeof(all), &all), 0);
  ASSERT_TRUE(one.ok() && other.ok());
  // Two that never wait share a processor.
  std::string said, complained;
  constexpr Duration kEnough = Duration::milliseconds(20);
  for (int i = 0; i < 6000 && one->queued_time() < kEnough; ++i) {
    one->listen(Duration::milliseconds(10), said, complained);
  }
  EXPECT_GE(one->queued_time(), kEnough);
  one->kill();
  listen_to_the_end(*one);
  EXPECT_EQ(one->queued_time(), Duration());
}

TEST(ChildProcessTest, GetsNoDescriptorButThoseNamed) {
  const Descriptor secret(::open("/dev/null", O_RDONLY));  // not closed by exec
  const Descriptor output(::memfd_create("output", MFD_CLOEXEC));
  // No pipeline, whose ends the shell would hold for a while; and not its last command, for which it may not fork.
  ChildOptions options = shell("echo done >&3; ls /proc/$$/fd; true");
  options.output_file = output.number();
  Result<ChildProcess> child = ChildProcess::start(options);
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(listen_to_the_end(*child).said, "0\n1\n2\n3\n");
  std::array<char, 8> text{};
  EXPECT_EQ(::pread(output.number(), text.data(), text.size(), 0), 5);
  EXPECT_STREQ(text.data(), "done\n");
}

TEST(ChildProcessTest, AProgramThatIsNotThereIsNamed) {
  const Result<ChildProcess> child = ChildProcess::start({.command = {"/no/such/program"}, .environment = {}});
  EXPECT_EQ(child.status().code(), StatusCode::kNotFound);
  EXPECT_NE(child.status().message().find("/no/such/program"), std::string::npos);
}

}  // namespace
}  // namespace foliot
