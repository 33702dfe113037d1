#include "foundation/platform/topology.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <numeric>

namespace foliot {
namespace {

CoreSet cores(uint32_t first, uint32_t last) {
  CoreSet set(last - first + 1);
  std::iota(set.begin(), set.end(), first);
  return set;
}

class TopologyTest : public testing::Test {
 protected:
  TopologyTest() {
    std::string name = testing::TempDir() + "foliot_topology_XXXXXX";
    root_ = ::mkdtemp(name.data());
  }
  ~TopologyTest() override { std::filesystem::remove_all(root_); }
  void file(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  // Two sockets of 32 cores.
  void two_sockets() {
    file("sys/devices/system/cpu/present", "0-63\n");
    file("sys/devices/system/cpu/online", "0-63\n");
    file("sys/devices/system/node/node0/cpulist", "0-31\n");
    file("sys/devices/system/node/node1/cpulist", "32-63\n");
    file("sys/devices/system/node/possible", "0-1\n");
  }
  Topology read(const CoreSet& affinity = cores(0, 63)) const { return read_topology(root_, affinity).value(); }
  static std::string error_of(const Topology& topology, const CoreSet& wanted) {
    return topology.check(wanted).message();
  }
  std::filesystem::path root_;
};

TEST_F(TopologyTest, CoresBelongToNodes) {
  two_sockets();
  const Topology topology = read();
  EXPECT_EQ(topology.usable(), cores(0, 63));
  EXPECT_EQ(topology.usable_by_node(), (std::vector{cores(0, 31), cores(32, 63)}));
  EXPECT_TRUE(topology.has_nodes());
  EXPECT_EQ(topology.granted, 64u);
  EXPECT_EQ(topology.cores[32].node, 1u);
}

TEST_F(TopologyTest, WithoutNodesThereIsOne) {
  file("sys/devices/system/cpu/present", "0-3\n");
  const Topology topology = read();
  EXPECT_EQ(topology.usable_by_node(), std::vector<CoreSet>{cores(0, 3)});
  EXPECT_FALSE(topology.has_nodes());
}

TEST_F(TopologyTest, ANodeOfMemoryAloneHasNoCores) {
  two_sockets();
  file("sys/devices/system/node/node2/cpulist", "\n");
  EXPECT_EQ(read().usable_by_node().size(), 2u);
}

TEST_F(TopologyTest, OnlyWhatIsOnlineAndAllowedIsUsable) {
  two_sockets();
  file("sys/devices/system/cpu/online", "0-29,32-63\n");
  file("proc/self/cgroup", "0::/box/inner\n");
  file("sys/fs/cgroup/box/cpuset.cpus.effective", "0-39\n");
  const Topology topology = read(cores(2, 63));
  EXPECT_EQ(topology.usable_by_node(), (std::vector{cores(2, 29), cores(32, 39)}));
  EXPECT_TRUE(topology.check({2, 39}).ok());
  EXPECT_EQ(error_of(topology, {30}), "core 30 is offline; usable are cores 2-29,32-39");
  EXPECT_EQ(error_of(topology, {1, 2}),
            "core 1 is forbidden by the affinity (taskset) of this process; usable are cores 2-29,32-39");
  EXPECT_EQ(error_of(topology, {40}),
            "core 40 is forbidden by the control group (cpuset) of this process; usable are cores 2-29,32-39");
  EXPECT_EQ(error_of(topology, {64}), "core 64 does not exist; this machine has cores 0-63");
  EXPECT_EQ(error_of(topology, {}), "a set without cores; name at least one");
}

TEST_F(TopologyTest, TheFirstVersionOfControlGroupsCounts) {
  two_sockets();
  file("proc/self/cgroup", "5:cpuset:/box\n");
  file("sys/fs/cgroup/cpuset/box/cpuset.effective_cpus", "0-7\n");
  EXPECT_EQ(read().usable(), cores(0, 7));
}

TEST_F(TopologyTest, AQuotaGrantsNoMoreThanIsUsable) {
  two_sockets();
  file("proc/self/cgroup", "0::/box\n");
  file("sys/fs/cgroup/box/cpu.max", "350000 100000\n");
  EXPECT_EQ(read().granted, 4u);
  EXPECT_EQ(read(cores(5, 6)).granted, 2u);
}

TEST_F(TopologyTest, AMachineThatDoesNotSayIsAnError) {
  EXPECT_EQ(read_topology(root_, {0}).status().code(), StatusCode::kUnavailable);
}

TEST(ThisTopologyTest, CoresOfThisMachineAreUsable) {
  const Topology topology = read_topology().value();
  ASSERT_FALSE(topology.usable().empty());
  EXPECT_TRUE(topology.check(topology.usable()).ok());
}

}  // namespace
}  // namespace foliot
