#include "engine/container/container_process.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "engine/container/test_container.h"
#include "foundation/platform/clock.h"

namespace foliot {
namespace {

// Before main(): the tests' containers are this program.
[[maybe_unused]] const bool is_container = TestContainer::run_if_asked();

constexpr Duration kLong = Duration::seconds(60);
constexpr uint64_t kMemoryBytes = 64 << 10;
constexpr uint64_t kOutput = 4096;

class ContainerProcessTest : public testing::Test {
 protected:
  Result<std::unique_ptr<ContainerProcess>> start(const ContainerOptions& options) {
    return ContainerProcess::start(options, [this](std::string_view line) { lines_.emplace_back(line); });
  }
  std::unique_ptr<ContainerProcess> started(const std::string& behaviour, uint64_t memory_bytes_max = 0) {
    ContainerOptions options = test_container(behaviour);
    options.memory_bytes = memory_bytes_max;
    auto process = start(options);
    EXPECT_TRUE(process.ok()) << process.status().message();
    const Status shared = (*process)->share_memory(kMemoryBytes);
    EXPECT_TRUE(shared.ok()) << shared.message();
    return std::move(process).value();
  }
  static std::span<float> floats(ContainerProcess& process, uint64_t offset) {
    return {reinterpret_cast<float*>(&process.memory()[offset]), 4 * kTestRowFloats};
  }
  static Status call(ContainerProcess& process, Duration timeout = kLong) {
    return process.call(1, 0, kOutput, timeout);
  }
  static void listen_to_the_end(ContainerProcess& process) {
    while (process.listen(Duration::seconds(1))) {
    }
  }
  // It is killed, by a call that says so.
  void expect_killed_for(const std::string& behaviour, const std::string& reason) {
    const auto process = started(behaviour);
    const Status status = call(*process);
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_NE(status.message().find(reason), std::string::npos) << status.message();
    EXPECT_FALSE(process->alive());
    listen_to_the_end(*process);
    EXPECT_NE(process->ending().find(reason), std::string::npos) << process->ending();
  }

  std::vector<std::string> lines_;
};

TEST_F(ContainerProcessTest, ComputesBatchesInSharedMemory) {
  const auto process = started("computes");
  EXPECT_EQ(process->description().inputs[0].name, "x");
  EXPECT_EQ(process->description().batch_size_max, 4u);
  for (const uint64_t input : {0, 64, 1024}) {
    const uint64_t output = input + kOutput;
    for (size_t i = 0; i < 4 * kTestRowFloats; ++i) floats(*process, input)[i] = static_cast<float>(i + input);
    ASSERT_TRUE(process->call(3, input, output, kLong).ok());
    for (size_t i = 0; i < 4 * kTestRowFloats; ++i) {
      const float expected = i < 3 * kTestRowFloats ? 2 * static_cast<float>(i + input) + 1 : 0;
      ASSERT_EQ(floats(*process, output)[i], expected) << i;
    }
    std::ranges::fill(process->memory(), std::byte{0});
  }
  EXPECT_TRUE(process->alive());
}

TEST_F(ContainerProcessTest, BatchesAreLimitedByTheOptions) {
  ContainerOptions options = test_container("computes");
  options.batch_size_max = 2;
  const auto process = start(options);
  ASSERT_TRUE(process.ok());
  EXPECT_EQ((*process)->description().batch_size_max, 2u);
}

TEST_F(ContainerProcessTest, ACallThatFailsIsFollowedByOthers) {
  const auto process = started("fails every other call");
  for (int i = 0; i < 3; ++i) {
    const Status failed = call(*process);
    EXPECT_EQ(failed.code(), StatusCode::kInternal);
    EXPECT_EQ(failed.message(), "ValueError: \\x1b[2J");
    EXPECT_TRUE(call(*process).ok());
  }
  EXPECT_TRUE(process->alive());
}

TEST_F(ContainerProcessTest, WhatBreaksTheProtocolIsKilled) {
  expect_killed_for("answers with another packet", "broke the protocol with a packet 'Z' of 1 bytes");
  expect_killed_for("answers with a longer packet", "broke the protocol with a packet 'R' of 2 bytes");
  expect_killed_for("answers with a large error", "broke the protocol with a packet 'E' of 5001 bytes");
  expect_killed_for("answers with a packet that is too large", "broke the protocol with a packet 'E'");
  expect_killed_for("closes its connection", "it closed its connection");
}

// Each call leaves one more, until it is there when a call begins, or calls fill the socket unread.
TEST_F(ContainerProcessTest, AnAnswerThatNothingAskedForIsNotTaken) {
  const auto process = started("answers twice");
  Status status;
  while (status.ok()) status = call(*process);
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("nothing asked for"), std::string::npos) << status.message();
}

TEST_F(ContainerProcessTest, ACallThatTakesTooLongIsKilled) {
  const auto process = started("hangs");
  const Status status = call(*process, Duration::milliseconds(1));
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("did not answer within 1 ms"), std::string::npos) << status.message();
  listen_to_the_end(*process);
  EXPECT_EQ(call(*process).code(), StatusCode::kUnavailable);
}

TEST_F(ContainerProcessTest, TheEndOfTheProcessEndsACall) {
  const auto process = started("exits");
  EXPECT_EQ(call(*process).code(), StatusCode::kUnavailable);
  EXPECT_FALSE(process->alive());
  listen_to_the_end(*process);
  EXPECT_EQ(process->ending(), "exit code 3");
}

TEST_F(ContainerProcessTest, ASignalFromElsewhereEndsACall) {
  const auto process = started("is killed");
  EXPECT_EQ(call(*process).code(), StatusCode::kUnavailable);
  listen_to_the_end(*process);
  EXPECT_EQ(process->ending(), "signal 9 (Killed)");
}

TEST_F(ContainerProcessTest, KillEndsACallOfAnotherThread) {
  const auto process = started("hangs");
  std::thread killer([&] { process->kill(); });
  EXPECT_EQ(call(*process).code(), StatusCode::kUnavailable);
  killer.join();
  listen_to_the_end(*process);
  EXPECT_FALSE(process->alive());
}

TEST_F(ContainerProcessTest, MemoryKeepsItsSize) { EXPECT_TRUE(call(*started("changes the size of memory")).ok()); }

TEST_F(ContainerProcessTest, WhatTakesTooMuchMemoryIsKilled) {
  const auto process = started("takes memory", uint64_t{64} << 20);
  std::thread caller([&] { EXPECT_EQ(call(*process).code(), StatusCode::kUnavailable); });
  listen_to_the_end(*process);
  caller.join();
  EXPECT_NE(process->ending().find("of memory; it may take 64.0 MiB"), std::string::npos) << process->ending();
}

TEST_F(ContainerProcessTest, LinesAreReadWhileACallRuns) {
  const auto process = started("prints a lot");
  ASSERT_TRUE(process->call_listening(1, 0, kOutput, kLong).ok());
  process->kill();
  listen_to_the_end(*process);
  ASSERT_FALSE(lines_.empty());
  EXPECT_EQ(lines_[0], "line 0");
  EXPECT_NE(lines_.back().find("lines dropped"), std::string::npos) << lines_.back();
}

TEST_F(ContainerProcessTest, OneThatCannotBeServedReportsWhy) {
  const auto refused = start(test_container("refuses"));
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(refused.status().message(), "model.py has no model\\x0a");

  const auto ended = start(test_container("ends before it is ready"));
  EXPECT_EQ(ended.status().code(), StatusCode::kInternal);
  EXPECT_NE(ended.status().message().find("exit code 7; its last line: No module named foliot"), std::string::npos)
      << ended.status().message();

  EXPECT_EQ(start(test_container("begins with another packet")).status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(start(test_container("describes nonsense")).status().message().find("'protocol' is 2"), std::string::npos);
}

TEST_F(ContainerProcessTest, OneThatIsNeverReadyIsGivenUp) {
  ContainerOptions options = test_container("is never ready");
  options.start_timeout = Duration::milliseconds(1);
  EXPECT_EQ(start(options).status().code(), StatusCode::kResourceExhausted);

  const auto cancelled = ContainerProcess::start(
      test_container("is never ready"), [](std::string_view) {}, [] { return true; });
  EXPECT_EQ(cancelled.status().code(), StatusCode::kUnavailable);
}

TEST_F(ContainerProcessTest, ALauncherThatIsNotThereIsNamed) {
  ContainerOptions options = test_container("computes");
  options.launcher = {"/no/such/program"};
  EXPECT_NE(start(options).status().message().find("/no/such/program"), std::string::npos);
}

}  // namespace
}  // namespace foliot
