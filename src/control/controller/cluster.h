// Cluster: the facts by which a policy decides. Read-only to it.
#ifndef FOLIOT_CONTROL_CONTROLLER_CLUSTER_H_
#define FOLIOT_CONTROL_CONTROLLER_CLUSTER_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/controller/device_model.h"
#include "control/controller/device_timing.h"
#include "control/controller/duration_model.h"
#include "control/controller/load_back_off.h"
#include "foundation/base/bit_set.h"
#include "foundation/base/check.h"
#include "foundation/base/time.h"
#include "foundation/core/model_info.h"
#include "foundation/core/model_target.h"

namespace foliot {

struct Cluster {
  // Durations follow the last measured ones (control/controller/rolling_duration_model.h).
  Cluster();
  explicit Cluster(std::unique_ptr<DurationModel> durations);

  std::vector<DeviceModel> devices;  // by DeviceId
  // By ModelId; null where removed. A model has the batch sizes that can be run now:
  // larger ones may come. Changed by add_model(), extend_model() and remove_model() only.
  std::vector<std::shared_ptr<const ModelInfo>> models;
  std::vector<uint32_t> copies;  // by ModelId: devices that hold it, loaded
  // By ModelId: devices that are up and hold it: loaded, loading or set aside.
  std::vector<uint32_t> held;
  LoadBackOff load_back_off;
  std::vector<DeviceTiming> timings;  // by DeviceId
  Duration margin_least;              // of all devices that are not lost
  // Actions of each kind that one device takes at a time; one more is turned down.
  uint32_t infers_outstanding_max = 0;
  uint32_t loads_outstanding_max = 0;

  const DurationModel& durations() const { return *durations_; }
  DurationModel& durations() { return *durations_; }
  const DeviceModel& device(DeviceId id) const {
    FOLIOT_CHECK(id.value() < devices.size());
    return devices[id.value()];
  }
  // An EXEC is planned to end this long before the deadlines of its requests.
  Duration margin(DeviceId id) const { return id.value() < timings.size() ? timings[id.value()].margin() : Duration(); }
  // How much later than planned its EXEC may begin and be in time all the same, mostly.
  Duration slack(DeviceId id) const {
    if (id.value() >= timings.size()) return Duration();
    return std::max(margin(id) / 4, margin(id) - timings[id.value()].report());
  }
  // For a request for which no device is chosen yet.
  Duration least_margin() const { return margin_least; }
  // A device that has less than this left to do may run out of work before more is there.
  Duration lookahead(DeviceId id) const {
    return id.value() < timings.size() ? timings[id.value()].lookahead() : Duration();
  }
  Duration usual_delivery(DeviceId id) const {
    return id.value() < timings.size() ? timings[id.value()].usual_delivery() : Duration();
  }
  bool has_model(ModelId id) const { return id.value() < models.size() && models[id.value()] != nullptr; }
  // It is there and is not being removed.
  bool is_offered(ModelId id) const { return has_model(id) && !withdrawn_[id.value()]; }
  const ModelInfo& model(ModelId id) const {
    FOLIOT_CHECK(has_model(id));
    return *models[id.value()];
  }
  // REQUIRES: has_model(id).
  bool has_bucket(ModelId id, BucketId bucket) const { return bucket.value() < bucket_counts_[id.value()]; }
  // How devices like this one run the model; nullptr: they cannot, and LOAD and INFER are
  // turned down. Holds until the model changes.
  const Runnable* runnable(DeviceId device_id, ModelId model_id) const {
    FOLIOT_CHECK(device_id.value() < devices.size());
    return runnable_of(devices[device_id.value()].kind(), model_id);
  }
  // That may be run: those of the runnable up to what the targets allow, the smallest at
  // least. Holds until the model or its target changes. REQUIRES: the device can run it.
  std::span<const uint32_t> batch_sizes(DeviceId device_id, ModelId model_id) const {
    return kinds_[device(device_id).kind().value()].batch_sizes[model_id.value()];
  }
  // Position of the batch size among those of the device's Runnable. REQUIRES: it is one of them.
  uint32_t batch_index(DeviceId device, ModelId model, uint32_t batch_size) const;
  uint32_t pages(DeviceId device_id, ModelId model_id) const { return runnable(device_id, model_id)->pages; }
  // What should be of the model (control/controller/targets.h).
  const ModelTarget& target(ModelId model_id) const { return targets_[model_id.value()]; }
  // Devices like this one can run the model, and its target allows it: else LOAD and INFER
  // are turned down.
  bool may_place(DeviceId device_id, ModelId model_id) const {
    return may_place_on(device(device_id).kind(), model_id);
  }
  bool may_place_on(KindId kind, ModelId model_id) const {
    const std::vector<bool>& allowed = kinds_[kind.value()].allowed;
    return model_id.value() < allowed.size() && allowed[model_id.value()];
  }
  // The first device, up or not, on which the model may be placed: where one stands for
  // all. A model of which requests are queued has one.
  std::optional<DeviceId> first_able(ModelId model_id) const {
    return model_id.value() < first_able_.size() ? first_able_[model_id.value()] : std::nullopt;
  }
  // False where it may not be placed, where there are as many copies as its target allows,
  // and for some time after a LOAD or an EXEC of the model failed there: a LOAD is turned
  // down. on_device_changed() is called when that time is over.
  bool may_load(DeviceId device_id, ModelId model_id, TimePoint now) const {
    return may_place(device_id, model_id) && held[model_id.value()] < target(model_id).copies_most &&
           load_back_off.may_load(device_id, model_id, now) && !device(device_id).set_aside(model_id);
  }
  // False where the target requires all copies that are loaded: an UNLOAD is turned down. A second copy is not
  // required while another model that a target requires has none.
  bool may_evict(ModelId model_id) const {
    const uint32_t least = target(model_id).copies_least;
    const uint32_t loaded = copies[model_id.value()];
    return least == 0 || loaded > least || (loaded > 1 && lacks_required_model());
  }
  // Pages of the device that copies which targets require hold: no LOAD can take them.
  uint32_t required_pages(const DeviceModel& device) const;
  // Whether some target requires a copy.
  bool requires_copies() const { return required_.next(0).has_value(); }
  // True where an INFER could be sent now: the model is loaded or is loading.
  bool placed(DeviceId device_id, ModelId model_id) const {
    return device(device_id).residency(model_id) != Residency::kAbsent;
  }

  // Kinds of device, of all devices and models so far.
  size_t kind_count() const { return kinds_.size(); }
  const std::string& kind_name(KindId kind) const { return kinds_[kind.value()].name; }
  bool knows_kind(std::string_view name) const;
  // Of this kind, up or not.
  uint32_t device_count(KindId kind) const { return kinds_[kind.value()].devices; }
  const Runnable* runnable_of(KindId kind, ModelId model_id) const {
    const std::vector<const Runnable*>& of_kind = kinds_[kind.value()].runnables;
    return model_id.value() < of_kind.size() ? of_kind[model_id.value()] : nullptr;
  }

  // What follows is the controller's.
  // REQUIRES: knows_kind(name), or there are fewer than kKindsMax.
  KindId intern_kind(std::string_view name);
  // The next id, with durations of its own; lost until it joins if it has no pages.
  DeviceModel& add_device(KindId kind, uint32_t page_count);
  // In place of none or of one that was removed.
  void add_model(std::shared_ptr<const ModelInfo> model);
  void extend_model(std::shared_ptr<const ModelInfo> model);
  // It is being removed.
  void withdraw_model(ModelId model) { withdrawn_[model.value()] = true; }
  void remove_model(ModelId model);
  // Whether the model would have a first_able() device, were this its target.
  bool has_able(ModelId model_id, const ModelTarget& target) const {
    return find_first_able(model_id, target).has_value();
  }
  // Counts copies of all models that the device holds, as it becomes up or stops to be.
  void count_copies(const DeviceModel& device, bool there);
  // REQUIRES: has_model(model_id).
  void set_target(ModelId model_id, const ModelTarget& target);

 private:
  struct Kind {
    std::string name;
    std::vector<const Runnable*> runnables;                // by ModelId; null: none
    std::vector<bool> allowed;                             // by ModelId: may_place_on()
    std::vector<std::span<const uint32_t>> batch_sizes{};  // by ModelId
    uint32_t devices = 0;
    std::optional<DeviceId> first_device;
  };
  static bool allows(const ModelTarget& target, const Kind& kind, uint32_t model);
  std::optional<DeviceId> find_first_able(ModelId model_id, const ModelTarget& target) const;
  void apply_target(uint32_t model);
  // Some model whose target requires a copy has none, and a device could have it.
  bool lacks_required_model() const;
  void resize(Kind& kind) const;
  std::vector<KindId> intern_kinds_of(const ModelInfo& model);
  void put_model(std::shared_ptr<const ModelInfo> model, std::span<const KindId> kinds);

  std::vector<Kind> kinds_;                          // by KindId
  std::vector<bool> withdrawn_;                      // by ModelId
  std::vector<uint16_t> bucket_counts_;              // by ModelId: for each request and batch, ModelInfo is far away
  std::vector<ModelTarget> targets_;                 // by ModelId
  BitSet required_;                                  // models whose target requires a copy
  std::vector<std::optional<DeviceId>> first_able_;  // by ModelId
  std::unique_ptr<DurationModel> durations_;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_CLUSTER_H_
