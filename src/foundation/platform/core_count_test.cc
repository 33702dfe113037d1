#include "foundation/platform/core_count.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "foundation/platform/core_set.h"

namespace foliot {
namespace {

class CoreCountTest : public testing::Test {
 protected:
  CoreCountTest() : root_(std::filesystem::temp_directory_path() / ("core-count-" + std::to_string(::getpid()))) {}
  ~CoreCountTest() override { std::filesystem::remove_all(root_); }

  void file(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  const std::filesystem::path root_;
};

TEST_F(CoreCountTest, FollowsTheQuotaOfEachGroup) {
  file("proc/self/cgroup", "0::/outer/inner\n");
  file("sys/fs/cgroup/outer/cpu.max", "400000 100000\n");
  file("sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
  const CoreCount cores(root_);
  EXPECT_EQ(cores.granted(), 4u);
  file("sys/fs/cgroup/outer/inner/cpu.max", "150000 100000\n");
  EXPECT_EQ(cores.granted(), 2u);
  file("sys/fs/cgroup/outer/cpu.max", "10000 100000\n");
  EXPECT_EQ(cores.granted(), 1u);
}

TEST_F(CoreCountTest, ReadsGroupsOfTheFirstVersion) {
  file("proc/self/cgroup", "3:cpu,cpuacct:/box\n");
  file("sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "50000\n");
  file("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "100000\n");
  const CoreCount cores(root_);
  EXPECT_EQ(cores.granted(), 2u);
  file("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(cores.granted(), kCoresMax);
}

TEST_F(CoreCountTest, HasNoLimitWithoutGroups) { EXPECT_EQ(CoreCount(root_).granted(), kCoresMax); }

TEST_F(CoreCountTest, CountsTheCoresOfThreads) {
  const CoreCount cores(root_);
  std::thread([&] {
    cpu_set_t all, one;
    CPU_ZERO(&all);
    ASSERT_EQ(::sched_getaffinity(0, sizeof(all), &all), 0);
    const std::array threads{::gettid(), ::gettid()};
    EXPECT_EQ(cores.of(threads), static_cast<uint32_t>(CPU_COUNT(&all)));
    int core = 0;
    while (!CPU_ISSET(core, &all)) ++core;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_EQ(cores.of(threads), 1u);
    // Another thread's cores count, too; the main thread has those of before.
    EXPECT_EQ(cores.of(std::array{::gettid(), ::getpid()}), static_cast<uint32_t>(CPU_COUNT(&all)));
  }).join();
}

}  // namespace
}  // namespace foliot
