// VariantRegistry: tasks, their variants, the devices, and the instances of variants that are
// loaded on them, each with its state and its load. What INFaaS keeps in its Metadata Store
// (section 3.2). Facts only: a VariantPolicy chooses.
//
// All indexes change on events, which are the functions that are not const. Costs: add_variant
// and remove_variant are linear in the task's variants; a LOAD or UNLOAD that changes whether
// a kind has room is linear in the variants of that kind; the other events are logarithmic
// in the variants and linear in one variant's instances.
//
// An instance is a variant on a device. Threading: one owner, the controller's thread. Time is
// an argument.
#ifndef FOLIOT_CONTROL_VARIANTS_VARIANT_REGISTRY_H_
#define FOLIOT_CONTROL_VARIANTS_VARIANT_REGISTRY_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/variants/variant.h"
#include "control/variants/variant_index.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/core/ids.h"

namespace foliot {

// Of a variant's instance (the paper's Figure 4). Inactive is a variant that has none.
enum class InstanceState : uint8_t { kInactive, kActive, kOverloaded, kInterfered };
std::string_view to_string(InstanceState state);

class VariantRegistry {
 public:
  static constexpr size_t kVariantsMax = 1 << 20;

  struct Instance {
    DeviceId device;
    InstanceState state = InstanceState::kActive;
    // When a query that is sent now would begin, as far as is known; in the past: at once.
    TimePoint begins = VariantIndex::kAlways;
  };
  struct Device {
    std::string kind;
    uint64_t free_bytes = 0;
    double utilisation = 0;  // in [0, 1]
    bool draining = false;   // takes no new instances
  };

  TaskId add_task(std::string_view name);  // the one of that name if there is one
  std::optional<TaskId> find_task(std::string_view name) const;
  const std::string& task_name(TaskId task) const { return tasks_.at(task.value()).name; }

  // Errors: those of check_variant(); kAlreadyExists;
  // kResourceExhausted at kVariantsMax.
  Result<VariantId> add_variant(TaskId task, Variant variant);
  // REQUIRES: it is there, without instances.
  void remove_variant(VariantId variant);

  // Its latencies and its LOAD are measured anew; what a query costs stays. REQUIRES: it is there; the
  // batch sizes are those that it has.
  void set_profile(VariantId variant, std::span<const Duration> latencies, Duration load);

  // REQUIRES: there is none of that id.
  void add_device(DeviceId device, std::string_view kind, uint64_t memory_bytes);
  // With its instances.
  void remove_device(DeviceId device);
  void set_utilisation(DeviceId device, double utilisation);
  void set_draining(DeviceId device);

  // REQUIRES, of these: variant and device are there, of one kind; of the last three, the
  // instance is there. More memory than is free is legal: the pages are the worker's business.
  void add_instance(VariantId variant, DeviceId device);
  void remove_instance(VariantId variant, DeviceId device);
  void set_state(VariantId variant, DeviceId device, InstanceState state);
  void set_begins(VariantId variant, DeviceId device, TimePoint begins);
  // Of all its instances, in the order of instances(variant), which is another one then.
  void set_begins(VariantId variant, std::span<const TimePoint> begins);

  bool has(VariantId variant) const { return variant.value() < entries_.size() && entries_[variant.value()].present; }
  const Variant& variant(VariantId variant) const { return entries_.at(variant.value()).variant; }
  TaskId task_of(VariantId variant) const { return entries_.at(variant.value()).task; }
  std::optional<VariantId> find_variant(TaskId task, std::string_view name) const;
  // Those of the task, by accuracy, ascending.
  const std::vector<VariantId>& variants(TaskId task) const { return tasks_.at(task.value()).by_accuracy; }
  // By `begins`, ascending.
  const std::vector<Instance>& instances(VariantId variant) const { return entries_.at(variant.value()).instances; }
  bool has_instance(VariantId variant, DeviceId device) const {
    return std::ranges::find(instances(variant), device, &Instance::device) != instances(variant).end();
  }
  // kInactive without instances; else kActive if one is; else that of the least loaded one.
  InstanceState state(VariantId variant) const;
  const std::map<DeviceId, Device>& devices() const { return devices_; }

  // Indexes of a task, by position in variants(task).
  // Those with an Active instance; cost is what a query costs.
  const VariantIndex& active(TaskId task) const { return tasks_.at(task.value()).active; }
  // Those with an instance; `ready` is when its least loaded one would answer if it had to
  // begin then; cost is what a query costs.
  const VariantIndex& loaded(TaskId task) const { return tasks_.at(task.value()).loaded; }
  // Those that some device has room for; cost is LOAD and inference, in nanoseconds.
  const VariantIndex& loadable(TaskId task) const { return tasks_.at(task.value()).loadable; }
  // All; cost is what a query costs.
  const VariantIndex& registered(TaskId task) const { return tasks_.at(task.value()).registered; }

  // The least loaded Active one.
  std::optional<DeviceId> active_device(VariantId variant) const;
  // The least utilised device of its kind that has room for it and does not have it yet.
  std::optional<DeviceId> loading_device(VariantId variant) const;

 private:
  struct Entry {
    TaskId task;
    Variant variant;
    bool present = true;
    uint32_t position = 0;
    std::vector<Instance> instances;  // by (begins, device)
  };
  struct Task {
    std::string name;
    std::vector<VariantId> by_accuracy;
    VariantIndex active, loaded, loadable, registered;
  };
  struct Kind {
    std::vector<DeviceId> by_utilisation;
    uint64_t room_bytes = 0;   // of the device with the most
    bool has_devices = false;  // that take instances
  };

  void index(VariantId id);
  void index_instances(VariantId id);
  void index_loadable(VariantId id);
  void rebuild(TaskId task);
  void refresh_room(const std::string& kind);
  std::vector<Instance>::iterator find_instance(VariantId variant, DeviceId device);
  void sort_in(std::vector<Instance>& instances, std::vector<Instance>::iterator at);

  std::vector<Task> tasks_;
  std::vector<Entry> entries_;  // by VariantId
  std::map<DeviceId, Device> devices_;
  std::map<std::string, Kind, std::less<>> kinds_;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_VARIANTS_VARIANT_REGISTRY_H_
