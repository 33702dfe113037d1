#include "foundation/platform/thread.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

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

TEST(ThreadTest, HasItsNameCoresAndPriority) {
  std::string name;
  int cpus = 0;
  int nice = 0;
  const ThreadOptions options{.name = "foliot-test", .cores = {first_allowed_cpu()}, .nice = 5};
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

// Of the calling thread, in ns; 0 where the kernel does not say.
uint64_t slice() {
  struct {  // sched_getattr(2)'s
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
  } attributes{};
  EXPECT_EQ(syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0), 0);
  return attributes.runtime;
}

TEST(ThreadTest, ServingThreadsHaveShorterSlicesThanOthers) {
  if (slice() == 0) GTEST_SKIP() << "this kernel has no slices of one's own";
  uint64_t serving = 0, background = 0;
  ASSERT_TRUE(Thread::start({.name = "serving"}, [&] { serving = slice(); }).ok());
  ASSERT_TRUE(Thread::start({.name = "background", .nice = 5}, [&] { background = slice(); }).ok());
  EXPECT_EQ(serving, 1'000'000u);
  EXPECT_EQ(background, slice());
}

TEST(ThreadTest, AServingThreadMayTakeTheKernelsSlices) {
  if (slice() == 0) GTEST_SKIP() << "this kernel has no slices of one's own";
  uint64_t own = 0;
  ASSERT_TRUE(Thread::start({.name = "serving"}, [&] {
                use_default_slices();
                own = slice();
              }).ok());
  EXPECT_EQ(own, slice());
}

TEST(ThreadTest, CoresThatCannotBeUsedAreAnError) {
  const Result<Thread> thread = Thread::start({.name = "nowhere", .cores = {kCoresMax - 1}}, [] { FAIL(); });
  ASSERT_FALSE(thread.ok());
  EXPECT_EQ(thread.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(thread.status().message().find("'nowhere' to cores 1023"), std::string::npos);
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
