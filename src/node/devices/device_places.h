// DevicePlaces: where the devices of a process run: on which cores, and by which memory.
#ifndef FOLIOT_NODE_DEVICES_DEVICE_PLACES_H_
#define FOLIOT_NODE_DEVICES_DEVICE_PLACES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/device/vulkan/driver.h"
#include "foundation/base/status.h"
#include "foundation/platform/core_set.h"
#include "foundation/platform/topology.h"

namespace foliot {

struct DevicePlace {
  uint32_t threads = 1;            // of one EXEC on all lanes
  uint32_t lanes = 1;              // with an equal share of the threads each
  CoreSet cores{};                 // that they are pinned to; empty: any
  std::optional<uint32_t> node{};  // whose memory it takes; nullopt: any
  // A GPU, whose EXECs one thread waits for, on one lane; nullptr: it computes on the cores.
  std::shared_ptr<VulkanDriver> gpu{};
};
using DevicePlaces = std::vector<DevicePlace>;  // by device, at least one

// So many devices a process has at most: as many as a controller takes of one worker.
inline constexpr size_t kDevicesPerProcessMax = 64;

// Device::kind() of it.
std::string kind_of(const DevicePlace& place);
// What CompileRequest::gpu is for these places.
std::string gpu_of(const DevicePlaces& places);
// All that packages depend on: Device::kind() and fingerprint(), of the widest of these places.
std::string package_device(const DevicePlaces& places);

// Without sets: one device for each NUMA node with usable cores, pinned there, but for one
// core in all, which is left to all else. With one node, or where a quota grants less time
// than there are cores, it is one device that is not pinned, of as many threads as
// processors are granted but one, at least one. Two cores of one node are one device of both,
// pinned, with a lane for each. The others have one lane.
DevicePlaces default_device_places(const Topology& topology);

// `sets`: as --devices takes them, "0-15;16-31": a device for each, as wide as its set. All
// cores of one node: it takes that node's memory. Errors: kInvalidArgument naming the set
// and the core that does not exist, cannot be used, or is in two sets. "vulkan:0", or "vulkan:NAME", alone: a GPU;
// "vulkan": the first that is no driver for the CPU. Errors also: those of VulkanDriver::open().
Result<DevicePlaces> parse_device_places(const std::string& sets, const Topology& topology);

// Divides each device into so many lanes. Errors: kInvalidArgument naming --lanes and the
// device whose threads it does not divide, or a number beyond kLanesMax.
Status set_lanes(DevicePlaces& places, uint32_t lanes);

// Of the widest.
uint32_t threads_max(const DevicePlaces& places);
// "1 thread on any cores", "16 threads in 4 lanes on cores 0-15, memory of node 0".
std::string to_string(const DevicePlace& place);

}  // namespace foliot

#endif  // FOLIOT_NODE_DEVICES_DEVICE_PLACES_H_
