#include "node/devices/device_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "engine/device/cpu/cpu_device.h"
#include "engine/device/vulkan/vulkan_device.h"
#include "foundation/core/lanes.h"
#include "foundation/core/model_info.h"

namespace foliot {
namespace {

// Of so many cores none is left to all else, and each is a lane (docs/decisions/0110, 0240).
constexpr size_t kAllCores = 2;

// Of --devices gpu: the message says where a GPU is asked for.
constexpr std::string_view kNoGpu =
    " (compiled models run on a GPU by --devices vulkan:0, as `foliot devices` lists them; a container has a GPU by "
    "`gpus "
    "= [0]` in its model.toml)";

// The node of all of them; nullopt: of several, or the machine has but one.
std::optional<uint32_t> node_of(const CoreSet& cores, const Topology& topology) {
  if (!topology.has_nodes()) return std::nullopt;
  std::optional<uint32_t> node;
  for (const Topology::Core& core : topology.cores) {
    if (!std::ranges::binary_search(cores, core.number)) continue;
    if (node && *node != core.node) return std::nullopt;
    node = core.node;
  }
  return node;
}

DevicePlace pinned(CoreSet cores, const Topology& topology) {
  const std::optional<uint32_t> node = node_of(cores, topology);
  return {.threads = static_cast<uint32_t>(cores.size()), .cores = std::move(cores), .node = node};
}

Status check_set(const CoreSet& cores, const DevicePlaces& earlier, const Topology& topology) {
  FOLIOT_RETURN_IF_ERROR(topology.check(cores));
  for (const DevicePlace& place : earlier) {
    for (const uint32_t core : cores) {
      if (!std::ranges::binary_search(place.cores, core)) continue;
      return Status::invalid_argument(
          fmt::format("core {} is in the set {} too; devices share no cores", core, to_string(place.cores)));
    }
  }
  return Status();
}

constexpr std::string_view kVulkan = "vulkan";

bool is_gpu(std::string_view set) { return set == kVulkan || set.starts_with("vulkan:"); }

Result<DevicePlaces> parse_gpu(const std::string& text) {
  if (text.find(';') != std::string::npos) {
    return Status::invalid_argument(
        fmt::format("--devices: '{}': a GPU is a server's only device; start another server for other devices", text));
  }
  const std::string which = text == kVulkan ? "" : text.substr(kVulkan.size() + 1);
  Result<std::shared_ptr<VulkanDriver>> driver = VulkanDriver::open({.which = which});
  if (!driver.ok()) return driver.status().with_context(fmt::format("--devices: '{}'", text));
  return DevicePlaces{{.gpu = std::move(driver).value()}};
}

}  // namespace

std::string kind_of(const DevicePlace& place) {
  return place.gpu == nullptr ? std::string(kDefaultKind) : vulkan_kind(place.gpu->gpu().name);
}

// By its name, so that it is the same in another process.
std::string gpu_of(const DevicePlaces& places) {
  const std::shared_ptr<VulkanDriver>& gpu = places.front().gpu;
  return gpu == nullptr ? "" : gpu->gpu().name;
}

std::string package_device(const DevicePlaces& places) {
  const auto text = [](const Device& device) { return device.kind() + " " + device.fingerprint(); };
  if (places.front().gpu != nullptr) return text(*make_vulkan_device(places.front().gpu));
  return text(*make_cpu_device({.threads = threads_max(places)}));
}

DevicePlaces default_device_places(const Topology& topology) {
  std::vector<CoreSet> nodes = topology.usable_by_node();
  const size_t usable = topology.usable().size();
  if (nodes.size() < 2 || topology.granted < usable) {
    if (usable == kAllCores && topology.granted >= usable) {
      DevicePlace both = pinned(topology.usable(), topology);
      both.lanes = kAllCores;
      return {both};
    }
    return {{.threads = std::max(2u, topology.granted) - 1}};
  }
  if (usable > 2) nodes.front().erase(nodes.front().begin());
  DevicePlaces places;
  for (CoreSet& cores : nodes) {
    if (!cores.empty()) places.push_back(pinned(std::move(cores), topology));
  }
  places.resize(std::min(places.size(), kDevicesPerProcessMax));
  return places;
}

Result<DevicePlaces> parse_device_places(const std::string& sets, const Topology& topology) {
  if (is_gpu(std::string_view(sets).substr(0, sets.find(';')))) return parse_gpu(sets);
  DevicePlaces places;
  std::string_view rest = sets;
  while (true) {
    const size_t end = std::min(rest.find(';'), rest.size());
    const std::string_view set = rest.substr(0, end);
    Result<CoreSet> cores = parse_core_set(set);
    const Status status = cores.ok() ? check_set(*cores, places, topology) : cores.status();
    if (!status.ok()) {
      const bool asks_for_gpu = set.starts_with("gpu") || set.starts_with("cuda") || is_gpu(set);
      return status.with_context(
          fmt::format("--devices: device {} ('{}'){}", places.size(), set, asks_for_gpu ? kNoGpu : ""));
    }
    places.push_back(pinned(std::move(cores).value(), topology));
    if (places.size() > kDevicesPerProcessMax) {
      return Status::invalid_argument(fmt::format("--devices: more than {} devices", kDevicesPerProcessMax));
    }
    if (end == rest.size()) return places;
    rest.remove_prefix(end + 1);
  }
}

Status set_lanes(DevicePlaces& places, uint32_t lanes) {
  if (lanes == 0 || lanes > kLanesMax) {
    return Status::invalid_argument(fmt::format("--lanes: {} is not between 1 and {}", lanes, kLanesMax));
  }
  for (size_t device = 0; device < places.size(); ++device) {
    const uint32_t threads = places[device].threads;
    if (threads % lanes == 0) {
      places[device].lanes = lanes;
      continue;
    }
    const std::string of = fmt::format("device {} has {} thread{}", device, threads, threads == 1 ? "" : "s");
    if (threads < lanes) {
      return Status::invalid_argument(
          fmt::format("--lanes: {}, too few for {} lanes; each takes one at least", of, lanes));
    }
    return Status::invalid_argument(fmt::format(
        "--lanes: {}, which are no multiple of {}; choose another number, or threads by --devices or --threads", of,
        lanes));
  }
  return Status();
}

uint32_t threads_max(const DevicePlaces& places) {
  return std::ranges::max_element(places, {}, &DevicePlace::threads)->threads;
}

std::string to_string(const DevicePlace& place) {
  if (place.gpu != nullptr) return fmt::format("the GPU '{}'", place.gpu->gpu().name);
  std::string threads = fmt::format("{} thread{}", place.threads, place.threads == 1 ? "" : "s");
  if (place.lanes > 1) threads += fmt::format(" in {} lanes", place.lanes);
  if (place.cores.empty()) return fmt::format("{} on any cores", threads);
  return fmt::format("{} on cores {}{}", threads, to_string(place.cores),
                     place.node ? fmt::format(", memory of node {}", *place.node) : "");
}

}  // namespace foliot
