// Cluster: the facts by which a policy decides. Read-only to it.
#ifndef FOLIOT_CONTROLLER_CLUSTER_H_
#define FOLIOT_CONTROLLER_CLUSTER_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/time.h"
#include "controller/device_model.h"
#include "controller/device_timing.h"
#include "controller/duration_model.h"
#include "controller/load_back_off.h"
#include "core/model_info.h"

namespace foliot {

struct Cluster {
  // Durations follow the last measured ones (controller/rolling_duration_model.h).
  Cluster();
  explicit Cluster(std::unique_ptr<DurationModel> durations);

  std::vector<DeviceModel> devices;  // by DeviceId
  // By ModelId; null where removed. A model has the batch sizes that can be run now:
  // larger ones may come. Changed by add_model(), extend_model() and remove_model() only.
  std::vector<std::shared_ptr<const ModelInfo>> models;
  std::vector<uint32_t> copies;  // by ModelId: devices that hold it, loaded
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
  bool has_model(ModelId id) const { return id.value() < models.size() && models[id.value()] != nullptr; }
  const ModelInfo& model(ModelId id) const {
    FOLIOT_CHECK(has_model(id));
    return *models[id.value()];
  }
  // How devices like this one run the model; nullptr: they cannot, and LOAD and INFER are
  // turned down. Holds until the model changes.
  const Runnable* runnable(DeviceId device_id, ModelId model_id) const {
    FOLIOT_CHECK(device_id.value() < devices.size());
    return runnable_of(devices[device_id.value()].kind(), model_id);
  }
  // REQUIRES: the device can run it.
  const std::vector<uint32_t>& batch_sizes(DeviceId device_id, ModelId model_id) const {
    return runnable(device_id, model_id)->batch_sizes;
  }
  uint32_t pages(DeviceId device_id, ModelId model_id) const { return runnable(device_id, model_id)->pages; }
  // The first device, up or not, that can run the model: where one stands for all.
  std::optional<DeviceId> first_able(ModelId model_id) const;
  // False where the device cannot run it, and for some time after a LOAD or an EXEC of the
  // model failed there: a LOAD is turned down. on_device_changed() is called when that
  // time is over.
  bool may_load(DeviceId device_id, ModelId model_id, TimePoint now) const {
    return runnable(device_id, model_id) != nullptr && load_back_off.may_load(device_id, model_id, now) &&
           !device(device_id).set_aside(model_id);
  }
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
  void remove_model(ModelId model);

 private:
  struct Kind {
    std::string name;
    std::vector<const Runnable*> runnables;  // by ModelId; null: none
    uint32_t devices = 0;
    std::optional<DeviceId> first_device;
  };
  std::vector<KindId> intern_kinds_of(const ModelInfo& model);
  void put_model(std::shared_ptr<const ModelInfo> model, std::span<const KindId> kinds);

  std::vector<Kind> kinds_;  // by KindId
  std::unique_ptr<DurationModel> durations_;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROLLER_CLUSTER_H_
