// SimulatedDevice: takes the place of a real device, and determines how long each piece
// of work takes: the model's profile times measured noise, with rare outliers. It also
// checks what would harm a device: pages given twice, an EXEC of a model that is not
// loaded, an UNLOAD under an EXEC.
#ifndef FOLIOT_VIRTUAL_WORLD_SIMULATED_DEVICE_H_
#define FOLIOT_VIRTUAL_WORLD_SIMULATED_DEVICE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/worker/engine.h"
#include "foundation/base/random.h"
#include "foundation/base/time.h"
#include "foundation/core/model_info.h"
#include "load/workload/seen_exec.h"
#include "virtual/world/resource_model.h"

namespace foliot {

// From `from`, counted from the start of virtual time, until the next: the speed of a
// device as a share of its profile's.
struct DeviceSpeed {
  Duration from;
  double speed = 1;  // above 0
};

struct NoiseOptions {
  // Standard deviation of EXEC and LOAD, as a share of the duration.
  double exec_deviation = 0.003;
  double load_deviation = 0.02;
  // Besides, as long for all models: of EXEC, normal with this standard deviation;
  // of LOAD, exponential with this mean, for a bus is sometimes late, never early.
  Duration exec_jitter{};
  Duration load_jitter{};
  // How often, and how many times longer, an outlier is.
  double outlier_probability = 0;
  double outlier_factor = 3;
  // A device that slows down: each EXEC takes this share longer than the one
  // before, until it takes so many times as long as the first.
  double exec_drift = 0;
  double exec_drift_max = 2;
  // Ascending; what a real device was seen to do, stalls included. Where there are
  // any, they take the place of exec_deviation and outliers.
  std::vector<DeviceSpeed> exec_speeds{};
  // By the names of models, ascending. An EXEC of such a model takes the factor of the one that is nearest in time, in
  // place of exec_deviation and outliers: what slows a device down for a moment does so to all that it executes then.
  std::map<std::string, std::vector<SeenExec>> seen_execs{};
  // INPUT and OUTPUT of one row.
  Duration copy = Duration::microseconds(20);
  // By the names of models: OUTPUT of one of their rows, in place of `copy`.
  std::map<std::string, Duration> outputs{};

  // What Clockwork's authors measured: in isolation, p99.99 within 0.03 % of the
  // median (section 2); under load, p99 of over-/underprediction 144/55 us for INFER
  // and 431/348 us for LOAD (section 6.5).
  static NoiseOptions clockwork();
};

struct SimulatedLanes {
  uint32_t count = 1;
  // The share of an EXEC that lanes divide among themselves; the rest takes as long on all as
  // on one (Amdahl's law). Profiles are of all lanes.
  double parallel_share = 0.9;

  // How many times as long as on all lanes an EXEC takes on so many.
  double slowdown(uint32_t width) const {
    const auto time = [this](uint32_t lanes) { return 1 - parallel_share + parallel_share / lanes; };
    return time(width) / time(count);
  }
};

// What the operators of a model take of a device while they run, as shares of it.
struct OperatorShares {
  double compute = 1;
  double memory = 0;
};
// [model][bucket][operator]. Operators of which it has none take all of the device.
using ResourceTable = std::vector<std::vector<std::vector<OperatorShares>>>;

// What is read of a row's outputs: in a simulation there are none.
using DrawReading = std::function<VisitReading(const BatchRows::Row&)>;

class SimulatedDevice : public Engine {
 public:
  // `resources`: EXECs that run at once slow each other down (virtual/world/resource_model.h); null:
  // they do not.
  SimulatedDevice(const NoiseOptions& noise, uint64_t seed, const SimulatedLanes& lanes = {},
                  std::shared_ptr<const ResourceTable> resources = nullptr)
      : noise_(noise), random_(seed), lanes_(lanes), resources_(std::move(resources)) {}

  void set_readings(DrawReading readings) { readings_ = std::move(readings); }

  bool has_resources() const { return resources_ != nullptr; }
  // The operators of an EXEC that takes so long alone. REQUIRES: has_resources().
  std::vector<OperatorLoad> loads(const Action& action, Duration alone) const;

  // From now on EXEC and LOAD take so many times as long.
  void set_slowdown(double factor) { slowdown_ = factor; }
  // From now on LOADs, or EXECs, fail as soon as they have begun.
  void set_failing(bool loads, bool execs);
  // From now on LOADs of this model do.
  void damage(ModelId model) { damaged_.insert(model); }
  // How long this piece of work of this executor takes when it begins at `now`.
  Duration duration(std::string_view executor, const Action& action, TimePoint now);

  // An INFER takes a few kilobytes of the io cache in every bucket.
  Result<WorkerModel> add(const EngineModel& model) override;
  Status prepare(ModelId model, size_t batch_index) override;
  void remove(ModelId model) override;
  Status load(ModelId model, std::span<const PageIndex> pages) override;
  void unload(ModelId model) override;
  void input(const InferWork& work) override;
  void output(const InferWork& work) override;
  Status run(const InferWork& work) override;

 private:
  Duration measured(const Action& action, TimePoint now);
  bool is_loaded(ModelId model) const { return model.value() < loaded_.size() && !loaded_[model.value()].empty(); }
  bool load_fails(ModelId model) const { return loads_fail_ || damaged_.contains(model); }
  void use_page(PageIndex page, bool use);
  Duration noisy(Duration duration, double deviation, Duration jitter);
  Duration at_measured_speed(Duration duration, TimePoint now) const;

  DrawReading readings_;  // empty: nothing is read
  NoiseOptions noise_;
  Random random_;
  SimulatedLanes lanes_;
  std::shared_ptr<const ResourceTable> resources_;
  double drift_ = 1;
  double slowdown_ = 1;
  bool loads_fail_ = false;
  bool execs_fail_ = false;
  std::set<ModelId> damaged_;
  std::vector<std::shared_ptr<const ModelInfo>> models_;
  std::vector<std::vector<PageIndex>> loaded_;  // by ModelId; empty: not loaded
  std::vector<bool> pages_in_use_;              // by PageIndex
};

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_WORLD_SIMULATED_DEVICE_H_
