#include "node/devices/device_places.h"

#include <gtest/gtest.h>

namespace foliot {
namespace {

// `cores` of them, spread over this many nodes in blocks.
Topology machine(uint32_t cores, uint32_t nodes) {
  Topology topology{.cores = {}, .granted = cores};
  for (uint32_t core = 0; core < cores; ++core)
    topology.cores.push_back({.number = core, .node = core * nodes / cores});
  return topology;
}

std::string places_of(const DevicePlaces& places) {
  std::string text;
  for (const DevicePlace& place : places) text += (text.empty() ? "" : "; ") + to_string(place);
  return text;
}

std::string error_of(const std::string& sets, const Topology& topology) {
  const auto places = parse_device_places(sets, topology);
  return places.ok() ? "" : places.status().message();
}

TEST(DevicePlacesTest, ByDefaultEachNodeIsADeviceAndOneCoreIsLeft) {
  EXPECT_EQ(places_of(default_device_places(machine(64, 2))),
            "31 threads on cores 1-31, memory of node 0; 32 threads on cores 32-63, memory of node 1");
  EXPECT_EQ(places_of(default_device_places(machine(4, 4))),
            "1 thread on cores 1, memory of node 1; 1 thread on cores 2, memory of node 2; "
            "1 thread on cores 3, memory of node 3");
  EXPECT_EQ(places_of(default_device_places(machine(2, 2))),
            "1 thread on cores 0, memory of node 0; 1 thread on cores 1, memory of node 1");
}

TEST(DevicePlacesTest, AGpuIsAServersOnlyDevice) {
  EXPECT_EQ(error_of("vulkan:0;0-1", machine(4, 1)),
            "--devices: 'vulkan:0;0-1': a GPU is a server's only device; start another server for other devices");
  EXPECT_NE(error_of("0;vulkan:0", machine(4, 1)).find("--devices vulkan:0"), std::string::npos);
  EXPECT_EQ(kind_of({}), "cpu");
}

TEST(DevicePlacesTest, OneNodeIsOneDeviceOnAnyCores) {
  EXPECT_EQ(places_of(default_device_places(machine(16, 1))), "15 threads on any cores");
  EXPECT_EQ(places_of(default_device_places(machine(1, 1))), "1 thread on any cores");
}

TEST(DevicePlacesTest, TwoCoresAreOneDeviceOfBoth) {
  EXPECT_EQ(places_of(default_device_places(machine(2, 1))), "2 threads in 2 lanes on cores 0-1");
  Topology topology = machine(2, 1);
  topology.granted = 1;
  EXPECT_EQ(places_of(default_device_places(topology)), "1 thread on any cores");
}

TEST(DevicePlacesTest, AQuotaIsNotSpreadOverNodes) {
  Topology topology = machine(64, 2);
  topology.granted = 8;
  EXPECT_EQ(places_of(default_device_places(topology)), "7 threads on any cores");
}

TEST(DevicePlacesTest, NodesThatMayNotBeUsedHaveNoDevice) {
  Topology topology = machine(8, 2);
  for (Topology::Core& core : topology.cores) core.in_affinity = core.number > 4;
  topology.granted = 3;
  EXPECT_EQ(places_of(default_device_places(topology)), "2 threads on any cores");
}

TEST(DevicePlacesTest, SetsAreDevices) {
  const Topology topology = machine(64, 2);
  const DevicePlaces places = parse_device_places("0-15;16-29;40,30", topology).value();
  EXPECT_EQ(places_of(places),
            "16 threads on cores 0-15, memory of node 0; 14 threads on cores 16-29, memory of node 0; "
            "2 threads on cores 30,40");
  EXPECT_EQ(threads_max(places), 16u);
}

TEST(DevicePlacesTest, OnOneNodeNoMemoryIsChosen) {
  EXPECT_EQ(places_of(parse_device_places("0;1", machine(2, 1)).value()), "1 thread on cores 0; 1 thread on cores 1");
}

TEST(DevicePlacesTest, BadSetsAreNamed) {
  Topology topology = machine(4, 1);
  topology.cores[3].online = false;
  EXPECT_EQ(error_of("0-1;1-2", topology),
            "--devices: device 1 ('1-2'): core 1 is in the set 0-1 too; devices share no cores");
  EXPECT_EQ(error_of("0;4", topology), "--devices: device 1 ('4'): core 4 does not exist; this machine has cores 0-3");
  EXPECT_EQ(error_of("2-3", topology), "--devices: device 0 ('2-3'): core 3 is offline; usable are cores 0-2");
  EXPECT_EQ(error_of("0;;1", topology), "--devices: device 1 (''): a set without cores; name at least one");
  EXPECT_EQ(error_of("0;", topology), "--devices: device 1 (''): a set without cores; name at least one");
  EXPECT_EQ(error_of("", topology), "--devices: device 0 (''): a set without cores; name at least one");
  EXPECT_EQ(error_of("0,0", topology), "--devices: device 0 ('0,0'): core 0 is named twice");
  EXPECT_EQ(error_of("a", topology),
            "--devices: device 0 ('a'): 'a' is no set of cores; write it like 0-15 or 0,2,4-7");
  std::string many = "0";
  for (int i = 1; i <= 64; ++i) many += ";" + std::to_string(i);
  EXPECT_EQ(error_of(many, machine(100, 1)), "--devices: more than 64 devices");
}

TEST(DevicePlacesTest, LanesHaveAnEqualShareOfEachDevicesThreads) {
  DevicePlaces places = parse_device_places("0-3;4-11", machine(12, 1)).value();
  ASSERT_TRUE(set_lanes(places, 4).ok());
  EXPECT_EQ(places_of(places), "4 threads in 4 lanes on cores 0-3; 8 threads in 4 lanes on cores 4-11");
  EXPECT_EQ(set_lanes(places, 5).message(),
            "--lanes: device 0 has 4 threads, too few for 5 lanes; each takes one at least");
  EXPECT_EQ(set_lanes(places, 3).message(),
            "--lanes: device 0 has 4 threads, which are no multiple of 3; choose another number, or threads by "
            "--devices or --threads");
  EXPECT_EQ(set_lanes(places, 0).message(), "--lanes: 0 is not between 1 and 64");
  EXPECT_EQ(set_lanes(places, 65).message(), "--lanes: 65 is not between 1 and 64");
}

}  // namespace
}  // namespace foliot
