// Cluster: the facts by which a policy decides. Read-only to it.
#ifndef FOLIOT_CONTROLLER_CLUSTER_H_
#define FOLIOT_CONTROLLER_CLUSTER_H_

#include <algorithm>
#include <cstdint>
#include <memory>
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
  explicit Cluster(std::unique_ptr<DurationModel> durations) : durations_(std::move(durations)) {}

  std::vector<DeviceModel> devices;  // by DeviceId
  // By ModelId; null where removed. A model has the batch sizes that can be run now:
  // larger ones may come.
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
  // False for some time after a LOAD or an EXEC of the model failed there: a LOAD is
  // turned down. on_device_changed() is called when that time is over.
  bool may_load(DeviceId device_id, ModelId model_id, TimePoint now) const {
    return load_back_off.may_load(device_id, model_id, now) && !device(device_id).set_aside(model_id);
  }
  // True where an INFER could be sent now: the model is loaded or is loading.
  bool placed(DeviceId device_id, ModelId model_id) const {
    return device(device_id).residency(model_id) != Residency::kAbsent;
  }

 private:
  std::unique_ptr<DurationModel> durations_;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROLLER_CLUSTER_H_
