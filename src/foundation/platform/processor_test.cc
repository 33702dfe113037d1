#include "foundation/platform/processor.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <thread>

namespace foliot {
namespace {

class ProcessorTest : public testing::Test {
 protected:
  ProcessorTest() {
    std::string name = testing::TempDir() + "foliot_processor_XXXXXX";
    root_ = ::mkdtemp(name.data());
  }
  ~ProcessorTest() override { std::filesystem::remove_all(root_); }
  void file(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  const uint32_t all_ = std::max(1u, std::thread::hardware_concurrency());
  std::filesystem::path root_;
};

TEST_F(ProcessorTest, WithoutAQuotaAllCount) {
  EXPECT_EQ(usable_processors(root_), all_);
  file("proc/self/cgroup", "0::/box\n");
  file("sys/fs/cgroup/box/cpu.max", "max 100000\n");
  EXPECT_EQ(usable_processors(root_), all_);
}

TEST_F(ProcessorTest, AQuotaOfAnOuterGroupCounts) {
  file("proc/self/cgroup", "0::/outer/inner\n");
  file("sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
  file("sys/fs/cgroup/outer/cpu.max", "50000 100000\n");
  EXPECT_EQ(usable_processors(root_), 1u);
}

TEST_F(ProcessorTest, AQuotaAboveWhatThereIsChangesNothing) {
  file("proc/self/cgroup", "0::/box\n");
  file("sys/fs/cgroup/box/cpu.max", "100000000 100000\n");
  EXPECT_EQ(usable_processors(root_), all_);
}

TEST_F(ProcessorTest, ControlGroupsOfTheFirstVersionCount) {
  file("proc/self/cgroup", "4:cpuset:/\n3:cpuacct,cpu:/box\n");
  file("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "100000\n");
  file("sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n");
  file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(usable_processors(root_), 1u);
}

TEST_F(ProcessorTest, HasTheNameThatTheSystemGives) {
  EXPECT_EQ(processor_name(root_), "unknown");
  file("proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nmodel name\t: Another\n");
  EXPECT_EQ(processor_name(root_), "Some CPU @ 2 GHz");
}

}  // namespace
}  // namespace foliot
