#include "platform/thread.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <array>
#include <utility>

namespace foliot {
namespace {

uint32_t first_allowed_cpu() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof(allowed), &allowed);
  uint32_t cpu = 0;
  while (!CPU_ISSET(cpu, &allowed)) ++cpu;
  return cpu;
}

TEST(ThreadTest, HasItsNameCpuAndPriority) {
  std::string name;
  int cpus = 0;
  int nice = 0;
  const ThreadOptions options{.name = "foliot-test", .cpu = first_allowed_cpu(), .nice = 5};
  Result<Thread> thread = Thread::start(options, [&] {
    std::array<char, 16> buffer{};
    pthread_getname_np(pthread_self(), buffer.data(), buffer.size());
    name = buffer.data();
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof(allowed), &allowed);
    cpus = CPU_COUNT(&allowed);
    nice = getpriority(PRIO_PROCESS, 0);
  });
  ASSERT_TRUE(thread.ok()) << thread.status().message();
  thread->join();
  EXPECT_EQ(name, "foliot-test");
  EXPECT_EQ(cpus, 1);
  EXPECT_GE(nice, 5);
}

TEST(ThreadTest, CpuThatCannotBeUsedIsAnError) {
  for (const uint32_t cpu : {uint32_t{CPU_SETSIZE - 1}, uint32_t{1'000'000}}) {
    const Result<Thread> thread = Thread::start({.name = "nowhere", .cpu = cpu}, [] { FAIL(); });
    ASSERT_FALSE(thread.ok());
    EXPECT_EQ(thread.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(thread.status().message().find("'nowhere'"), std::string::npos);
  }
}

TEST(ThreadTest, IsJoinedWhenItsOwnerGoes) {
  int runs = 0;
  {
    Result<Thread> first = Thread::start({.name = "first"}, [&] { ++runs; });
    ASSERT_TRUE(first.ok());
    Thread owner = std::move(first).value();
    owner = Thread();  // joins
    EXPECT_EQ(runs, 1);
    Result<Thread> second = Thread::start({.name = "second"}, [&] { ++runs; });
    ASSERT_TRUE(second.ok());
    EXPECT_FALSE(second->is_current());
  }
  EXPECT_EQ(runs, 2);
}

}  // namespace
}  // namespace foliot
