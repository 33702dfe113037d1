#include "foundation/platform/memory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace foliot {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

class MemoryTest : public testing::Test {
 protected:
  MemoryTest() {
    std::string name = testing::TempDir() + "foliot_memory_XXXXXX";
    root_ = ::mkdtemp(name.data());
    file("proc/meminfo", "MemTotal:       16777216 kB\nMemFree:  1 kB\nMemAvailable:    8388608 kB\n");
  }
  ~MemoryTest() override { std::filesystem::remove_all(root_); }
  void file(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::filesystem::path root_;
};

TEST_F(MemoryTest, WithoutAControlGroupTheMachineCounts) {
  EXPECT_EQ(total_memory_bytes(root_), 16 * kGiB);
  EXPECT_EQ(available_memory_bytes(root_), 8 * kGiB);
}

TEST_F(MemoryTest, TheTightestControlGroupCounts) {
  file("proc/self/cgroup", "0::/outer/inner\n");
  file("sys/fs/cgroup/outer/inner/memory.max", "max\n");
  file("sys/fs/cgroup/outer/inner/memory.current", "1\n");
  file("sys/fs/cgroup/outer/memory.max", "4294967296\n");
  file("sys/fs/cgroup/outer/memory.current", "2147483648\n");
  file("sys/fs/cgroup/outer/memory.stat", "anon 5\ninactive_file 1073741824\n");
  EXPECT_EQ(total_memory_bytes(root_), 4 * kGiB);
  EXPECT_EQ(available_memory_bytes(root_), 3 * kGiB);
}

TEST_F(MemoryTest, ControlGroupsOfTheFirstVersionCount) {
  file("proc/self/cgroup", "4:memory:/box\n0::/\n");
  file("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "1073741824\n");
  file("sys/fs/cgroup/memory/box/memory.usage_in_bytes", "2147483648\n");
  EXPECT_EQ(total_memory_bytes(root_), kGiB);
  EXPECT_EQ(available_memory_bytes(root_), 0u);
}

TEST_F(MemoryTest, AnUnknownAmountIsNoError) {
  std::filesystem::remove(root_ / "proc/meminfo");
  EXPECT_EQ(available_memory_bytes(root_), std::nullopt);
}

TEST_F(MemoryTest, ThisMachineHasSome) {
  EXPECT_GT(total_memory_bytes(), 0u);
  EXPECT_LE(available_memory_bytes().value_or(0), total_memory_bytes());
}

}  // namespace
}  // namespace foliot
