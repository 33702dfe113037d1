#include "control/variants/variant_registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "foundation/base/check.h"

namespace foliot {
namespace {

bool comes_before(const VariantRegistry::Instance& a, const VariantRegistry::Instance& b) {
  return std::tie(a.begins, a.device) < std::tie(b.begins, b.device);
}

}  // namespace

std::string_view to_string(InstanceState state) {
  switch (state) {
    case InstanceState::kInactive: return "inactive";
    case InstanceState::kActive: return "active";
    case InstanceState::kOverloaded: return "overloaded";
    case InstanceState::kInterfered: return "interfered";
  }
  return "unknown";
}

TaskId VariantRegistry::add_task(std::string_view name) {
  if (const std::optional<TaskId> found = find_task(name)) return *found;
  tasks_.push_back(
      {.name = std::string(name), .by_accuracy = {}, .active = {}, .loaded = {}, .loadable = {}, .registered = {}});
  return TaskId(static_cast<uint32_t>(tasks_.size() - 1));
}

std::optional<TaskId> VariantRegistry::find_task(std::string_view name) const {
  const auto found = std::ranges::find(tasks_, name, &Task::name);
  if (found == tasks_.end()) return std::nullopt;
  return TaskId(static_cast<uint32_t>(found - tasks_.begin()));
}

Result<VariantId> VariantRegistry::add_variant(TaskId task, Variant variant) {
  FOLIOT_RETURN_IF_ERROR(check_variant(variant));
  if (find_variant(task, variant.name)) {
    return Status::already_exists(fmt::format("task '{}' has a variant '{}' already", task_name(task), variant.name));
  }
  if (entries_.size() == kVariantsMax) {
    return Status::resource_exhausted(fmt::format("limit of {} variants reached", kVariantsMax));
  }
  const VariantId id(static_cast<uint32_t>(entries_.size()));
  entries_.push_back({.task = task, .variant = std::move(variant), .instances = {}});
  tasks_[task.value()].by_accuracy.push_back(id);
  rebuild(task);
  return id;
}

void VariantRegistry::remove_variant(VariantId variant) {
  FOLIOT_CHECK(has(variant) && instances(variant).empty());
  Entry& entry = entries_[variant.value()];
  entry.present = false;
  std::erase(tasks_[entry.task.value()].by_accuracy, variant);
  rebuild(entry.task);
}

void VariantRegistry::set_profile(VariantId id, std::span<const Duration> latencies, Duration load) {
  FOLIOT_CHECK(has(id));
  Variant& variant = entries_[id.value()].variant;
  FOLIOT_CHECK(latencies.size() == variant.latencies.size());
  for (size_t i = 0; i < latencies.size(); ++i) variant.latencies[i].latency = latencies[i];
  variant.load = load;
  index(id);
}

void VariantRegistry::rebuild(TaskId id) {
  Task& task = tasks_[id.value()];
  std::ranges::stable_sort(task.by_accuracy, {}, [this](VariantId variant) { return this->variant(variant).accuracy; });
  std::vector<double> accuracies;
  for (const VariantId variant : task.by_accuracy) accuracies.push_back(this->variant(variant).accuracy);
  for (VariantIndex* index : {&task.active, &task.loaded, &task.loadable, &task.registered}) index->reset(accuracies);
  for (uint32_t i = 0; i < task.by_accuracy.size(); ++i) {
    entries_[task.by_accuracy[i].value()].position = i;
    index(task.by_accuracy[i]);
  }
}

void VariantRegistry::index(VariantId id) {
  const Entry& entry = entries_[id.value()];
  tasks_[entry.task.value()].registered.set(
      entry.position, {entry.variant.latency(), VariantIndex::kAlways, entry.variant.query_picodollars()});
  index_instances(id);
  index_loadable(id);
}

void VariantRegistry::index_instances(VariantId id) {
  const Entry& entry = entries_[id.value()];
  Task& task = tasks_[entry.task.value()];
  const int64_t cost = entry.variant.query_picodollars();
  if (active_device(id)) {
    task.active.set(entry.position, {entry.variant.latency(), VariantIndex::kAlways, cost});
  } else {
    task.active.clear(entry.position);
  }
  if (entry.instances.empty()) return task.loaded.clear(entry.position);
  const TimePoint begins = entry.instances.front().begins;
  const TimePoint ready = begins == VariantIndex::kAlways ? begins : begins + entry.variant.latency();
  task.loaded.set(entry.position, {entry.variant.latency(), ready, cost});
}

void VariantRegistry::index_loadable(VariantId id) {
  const Entry& entry = entries_[id.value()];
  VariantIndex& loadable = tasks_[entry.task.value()].loadable;
  const auto kind = kinds_.find(entry.variant.kind);
  const bool fits =
      kind != kinds_.end() && kind->second.has_devices && kind->second.room_bytes >= entry.variant.memory_bytes;
  if (!fits) return loadable.clear(entry.position);
  const Duration start = entry.variant.load + entry.variant.latency();
  loadable.set(entry.position, {entry.variant.latency(), VariantIndex::kAlways, start.nanoseconds()});
}

void VariantRegistry::refresh_room(const std::string& name) {
  Kind& kind = kinds_[name];
  uint64_t room = 0;
  bool any = false;
  for (const DeviceId id : kind.by_utilisation) {
    const Device& device = devices_.at(id);
    if (device.draining) continue;
    any = true;
    room = std::max(room, device.free_bytes);
  }
  if (std::tie(room, any) == std::tie(kind.room_bytes, kind.has_devices)) return;
  kind.room_bytes = room;
  kind.has_devices = any;
  for (uint32_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].present && entries_[i].variant.kind == name) index_loadable(VariantId(i));
  }
}

void VariantRegistry::add_device(DeviceId device, std::string_view kind, uint64_t memory_bytes) {
  const bool added = devices_.emplace(device, Device{std::string(kind), memory_bytes}).second;
  FOLIOT_CHECK(added);
  const std::string name(kind);
  std::vector<DeviceId>& order = kinds_[name].by_utilisation;
  order.insert(order.begin(), device);
  set_utilisation(device, 0);
  refresh_room(name);
}

void VariantRegistry::remove_device(DeviceId device) {
  const std::string kind = devices_.at(device).kind;
  for (uint32_t i = 0; i < entries_.size(); ++i) {
    if (std::ranges::count(entries_[i].instances, device, &Instance::device) > 0) remove_instance(VariantId(i), device);
  }
  std::erase(kinds_[kind].by_utilisation, device);
  devices_.erase(device);
  refresh_room(kind);
}

void VariantRegistry::set_utilisation(DeviceId device, double utilisation) {
  devices_.at(device).utilisation = utilisation;
  std::ranges::sort(kinds_[devices_.at(device).kind].by_utilisation, {},
                    [this](DeviceId id) { return std::pair(devices_.at(id).utilisation, id); });
}

void VariantRegistry::set_draining(DeviceId device) {
  devices_.at(device).draining = true;
  refresh_room(devices_.at(device).kind);
}

void VariantRegistry::add_instance(VariantId variant, DeviceId device) {
  Entry& entry = entries_.at(variant.value());
  Device& on = devices_.at(device);
  FOLIOT_CHECK(on.kind == entry.variant.kind);
  FOLIOT_CHECK(std::ranges::count(entry.instances, device, &Instance::device) == 0);
  entry.instances.push_back({.device = device});
  sort_in(entry.instances, entry.instances.end() - 1);
  on.free_bytes -= std::min(on.free_bytes, entry.variant.memory_bytes);
  index_instances(variant);
  refresh_room(on.kind);
}

void VariantRegistry::remove_instance(VariantId variant, DeviceId device) {
  Entry& entry = entries_.at(variant.value());
  entry.instances.erase(find_instance(variant, device));
  Device& on = devices_.at(device);
  on.free_bytes += entry.variant.memory_bytes;
  index_instances(variant);
  refresh_room(on.kind);
}

void VariantRegistry::set_state(VariantId variant, DeviceId device, InstanceState state) {
  Instance& instance = *find_instance(variant, device);
  if (instance.state == state) return;
  instance.state = state;
  index_instances(variant);
}

void VariantRegistry::set_begins(VariantId variant, DeviceId device, TimePoint begins) {
  const auto instance = find_instance(variant, device);
  instance->begins = begins;
  sort_in(entries_[variant.value()].instances, instance);
  index_instances(variant);
}

void VariantRegistry::set_begins(VariantId variant, std::span<const TimePoint> begins) {
  std::vector<Instance>& instances = entries_.at(variant.value()).instances;
  FOLIOT_CHECK(begins.size() == instances.size());
  if (instances.empty()) return;
  for (size_t i = 0; i < begins.size(); ++i) instances[i].begins = begins[i];
  std::ranges::sort(instances, comes_before);
  index_instances(variant);
}

std::vector<VariantRegistry::Instance>::iterator VariantRegistry::find_instance(VariantId variant, DeviceId device) {
  std::vector<Instance>& instances = entries_.at(variant.value()).instances;
  const auto found = std::ranges::find(instances, device, &Instance::device);
  FOLIOT_CHECK(found != instances.end());
  return found;
}

// Moves the one at `at` to its place among the others, which are sorted.
void VariantRegistry::sort_in(std::vector<Instance>& instances, std::vector<Instance>::iterator at) {
  for (; at != instances.begin() && comes_before(*at, *(at - 1)); --at) std::iter_swap(at, at - 1);
  for (; at + 1 != instances.end() && comes_before(*(at + 1), *at); ++at) std::iter_swap(at, at + 1);
}

std::optional<VariantId> VariantRegistry::find_variant(TaskId task, std::string_view name) const {
  for (const VariantId id : variants(task)) {
    if (variant(id).name == name) return id;
  }
  return std::nullopt;
}

InstanceState VariantRegistry::state(VariantId variant) const {
  if (instances(variant).empty()) return InstanceState::kInactive;
  return active_device(variant) ? InstanceState::kActive : instances(variant).front().state;
}

std::optional<DeviceId> VariantRegistry::active_device(VariantId variant) const {
  for (const Instance& instance : instances(variant)) {
    if (instance.state == InstanceState::kActive) return instance.device;
  }
  return std::nullopt;
}

std::optional<DeviceId> VariantRegistry::loading_device(VariantId id) const {
  const Entry& entry = entries_.at(id.value());
  const auto kind = kinds_.find(entry.variant.kind);
  if (kind == kinds_.end()) return std::nullopt;
  for (const DeviceId device : kind->second.by_utilisation) {
    const Device& on = devices_.at(device);
    if (on.draining || on.free_bytes < entry.variant.memory_bytes) continue;
    if (std::ranges::count(entry.instances, device, &Instance::device) == 0) return device;
  }
  return std::nullopt;
}

}  // namespace foliot
