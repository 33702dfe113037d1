// FakeDurationModel: for tests: a DurationModel that expects what was recorded last, and
// the seeds before that. Each doubt takes a quarter off one row's EXEC.
#ifndef FOLIOT_CONTROL_CONTROLLER_FAKE_DURATION_MODEL_H_
#define FOLIOT_CONTROL_CONTROLLER_FAKE_DURATION_MODEL_H_

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "control/controller/duration_model.h"
#include "foundation/core/lanes.h"

namespace foliot {

class FakeDurationModel : public DurationModel {
 public:
  void add_device(KindId kind) override {
    devices_.emplace_back().kind = kind;
    ++revision_;
  }
  void set_lane_count(DeviceId device, uint32_t lane_count) override {
    if (std::exchange(devices_[device.value()].lanes, lane_count) != lane_count) ++revision_;
  }
  void forget_device(DeviceId device) override {
    const Recorded& own = devices_[device.value()];
    devices_[device.value()] = {.kind = own.kind, .lanes = own.lanes};
    ++revision_;
  }
  void add_model(const ModelInfo& model, std::span<const KindId> kinds) override {
    for (Recorded& device : devices_) {
      std::erase_if(device.execs, [&](const auto& entry) { return std::get<0>(entry.first) == model.id; });
      device.loads.erase(model.id);
    }
    std::erase_if(doubts_, [&](const auto& entry) { return entry.first.first == model.id; });
    std::erase_if(runnables_, [&](const auto& entry) { return entry.first.second == model.id; });
    extend_model(model, kinds);
  }
  void extend_model(const ModelInfo& model, std::span<const KindId> kinds) override {
    for (size_t i = 0; i < kinds.size(); ++i) {
      runnables_.insert_or_assign(std::pair(kinds[i], model.id), model.runnables[i]);
    }
    ++revision_;
  }

  Duration load(DeviceId device, ModelId model) const override {
    const auto& loads = devices_[device.value()].loads;
    const auto found = loads.find(model);
    return found != loads.end() ? found->second : runnable(device, model).seed_load;
  }
  Duration exec(const ExecShape& shape) const override {
    const auto& execs = devices_[shape.device.value()].execs;
    const auto found = execs.find({shape.model, shape.bucket, shape.batch_index, shape.width_index});
    Duration exec = found != execs.end() ? found->second : seed(shape);
    const auto doubts = doubts_.find({shape.model, shape.bucket});
    for (uint32_t i = 0; shape.batch_index == 0 && doubts != doubts_.end() && i < doubts->second; ++i) {
      exec = exec - exec / 4;
    }
    return exec;
  }
  std::span<const Duration> execs(DeviceId device, ModelId model, BucketId bucket,
                                  uint32_t width_index) const override {
    execs_.clear();
    for (uint32_t i = 0; i < runnable(device, model).batch_sizes.size(); ++i) {
      execs_.push_back(exec({device, model, bucket, i, width_index}));
    }
    return execs_;
  }
  uint64_t revision() const override { return revision_; }
  uint64_t revision(ModelId model) const override {
    uint64_t revision = revision_;
    for (const auto& [place, count] : doubts_) revision += place.first == model ? count : 0;
    return revision;
  }

  void record_load(DeviceId device, ModelId model, Duration measured) override {
    devices_[device.value()].loads[model] = measured;
  }
  void record_exec(const ExecShape& shape, Duration measured) override {
    devices_[shape.device.value()].execs[{shape.model, shape.bucket, shape.batch_index, shape.width_index}] = measured;
  }
  void doubt(ModelId model, BucketId bucket, TimePoint /*now*/) override { ++doubts_[{model, bucket}]; }

 private:
  struct Recorded {
    KindId kind;
    uint32_t lanes = 1;
    std::map<ModelId, Duration> loads{};
    std::map<std::tuple<ModelId, BucketId, uint32_t, uint32_t>, Duration> execs{};
  };
  Duration seed(const ExecShape& shape) const {
    const uint32_t lanes = devices_[shape.device.value()].lanes;
    const Duration all = runnable(shape.device, shape.model).seed_exec.at(shape.bucket.value()).at(shape.batch_index);
    return all * lanes / width_at(shape.width_index, lanes);
  }
  const Runnable& runnable(DeviceId device, ModelId model) const {
    return runnables_.at({devices_[device.value()].kind, model});
  }

  std::vector<Recorded> devices_;
  std::map<std::pair<KindId, ModelId>, Runnable> runnables_;
  std::map<std::pair<ModelId, BucketId>, uint32_t> doubts_;
  mutable std::vector<Duration> execs_;
  uint64_t revision_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_FAKE_DURATION_MODEL_H_
