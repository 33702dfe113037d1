#include "virtual/world/simulated_device.h"

#include <algorithm>
#include <iterator>

#include "engine/worker/infer_executors.h"
#include "foundation/base/check.h"

namespace foliot {
namespace {

// Of a LOAD or an EXEC that fails.
constexpr Duration kFailure = Duration::microseconds(10);

// Draws only where there is jitter.
template <typename Draw>
Duration jittery(Duration scale, Draw draw) {
  return scale > Duration() ? scale.scaled(draw()) : Duration();
}

// REQUIRES: there are some.
const SeenExec& nearest(const std::vector<SeenExec>& seen, TimePoint now) {
  const Duration time = now - TimePoint();
  const auto next = std::ranges::lower_bound(seen, time, {}, &SeenExec::at);
  if (next == seen.begin()) return *next;
  const auto before = std::prev(next);
  return next == seen.end() || time - before->at <= next->at - time ? *before : *next;
}

}  // namespace

// The estimate is the largest of ten measurements. Then a normal jitter is at p99
// overpredicted by 4.3 and underpredicted by 2.0 deviations, an exponential one by 6.3
// and 4.6 means: with the values below 130/60 us and 450/330 us, within a tenth of the
// paper's.
NoiseOptions NoiseOptions::clockwork() {
  constexpr double kInIsolation = 0.0003 / 3.72;  // 3.72 deviations are p99.99
  return {.exec_deviation = kInIsolation,
          .load_deviation = kInIsolation,
          .exec_jitter = Duration::microseconds(30),
          .load_jitter = Duration::microseconds(71)};
}

Result<WorkerModel> SimulatedDevice::add(const EngineModel& model) {
  const ModelInfo& info = *model.info;
  const uint32_t id = info.id.value();
  if (id >= models_.size()) models_.resize(id + 1);
  models_[id] = model.info;
  WorkerModel added{.id = info.id, .pages = info.only().pages, .batch_sizes = info.only().batch_sizes};
  for (const std::vector<Duration>& seeds : info.only().seed_exec) {
    const uint64_t output = noise_.outputs.contains(info.name) ? 2 * kSmallBytes : 4096;
    added.io_bytes.insert(added.io_bytes.end(), seeds.size(), IoBytes{4096, output});
  }
  return added;
}

Status SimulatedDevice::prepare(ModelId /*model*/, size_t /*batch_index*/) { return Status(); }

void SimulatedDevice::remove(ModelId model) {
  FOLIOT_CHECK(!is_loaded(model));
  if (model.value() < models_.size()) models_[model.value()] = nullptr;
}

Duration SimulatedDevice::duration(std::string_view executor, const Action& action, TimePoint now) {
  if (executor == "input" || executor.ends_with("output")) {
    const bool is_input = executor == "input";
    if (!(is_input ? action.range.begins() : action.range.ends())) return Duration();
    const auto large = is_input ? noise_.outputs.end() : noise_.outputs.find(models_[action.model.value()]->name);
    return (large == noise_.outputs.end() ? noise_.copy : large->second) * static_cast<int64_t>(action.rows.size());
  }
  if (action.type == ActionType::kUnload) return Duration();
  if (action.type == ActionType::kLoad ? load_fails(action.model) : execs_fail_) return kFailure;
  const Duration duration = measured(action, now);
  return slowdown_ == 1 ? duration : duration.scaled(slowdown_);
}

std::vector<OperatorLoad> SimulatedDevice::loads(const Action& action, Duration alone) const {
  const Runnable& runnable = models_[action.model.value()]->only();
  static const std::vector<OperatorShares> none;
  const auto& of_model = resources_->at(action.model.value());
  const std::vector<OperatorShares>& shares =
      action.bucket.value() < of_model.size() ? of_model[action.bucket.value()] : none;
  const uint32_t last = std::min(action.range.last, runnable.operator_count());
  const double whole = runnable.share(action.range);
  std::vector<OperatorLoad> loads;
  for (uint32_t i = action.range.first; i < last; ++i) {
    const Duration own = alone.scaled(runnable.share({i, i + 1}) / whole);
    const OperatorShares share = i < shares.size() ? shares[i] : OperatorShares();
    loads.push_back({std::max(own, Duration::nanoseconds(1)), share.compute, share.memory});
  }
  return loads;
}

void SimulatedDevice::set_failing(bool loads, bool execs) {
  loads_fail_ = loads;
  execs_fail_ = execs;
}

// Of LOAD and EXEC, without what is wrong with the device.
Duration SimulatedDevice::measured(const Action& action, TimePoint now) {
  const ModelInfo& model = *models_[action.model.value()];
  if (action.type == ActionType::kLoad) {
    const Duration jitter = jittery(noise_.load_jitter, [&] { return random_.exponential(); });
    return noisy(model.only().seed_load, noise_.load_deviation, jitter);
  }
  const auto& sizes = model.only().batch_sizes;
  const auto index = std::find(sizes.begin(), sizes.end(), action.batch_size) - sizes.begin();
  drift_ = std::min(drift_ * (1 + noise_.exec_drift), noise_.exec_drift_max);
  Duration seed = model.only().seed_exec[action.bucket.value()][static_cast<size_t>(index)];
  if (!action.range.whole()) seed = seed.scaled(model.only().share(action.range));
  if (action.lanes.count != lanes_.count) seed = seed.scaled(lanes_.slowdown(action.lanes.count));
  if (!noise_.exec_speeds.empty()) return at_measured_speed(seed.scaled(drift_), now);
  const auto seen = noise_.seen_execs.find(model.name);
  if (seen != noise_.seen_execs.end() && !seen->second.empty()) {
    return seed.scaled(drift_ * nearest(seen->second, now).factor);
  }
  const Duration jitter = jittery(noise_.exec_jitter, [&] { return random_.normal(); });
  return noisy(seed.scaled(drift_), noise_.exec_deviation, jitter);
}

// As much work as `duration` at full speed, with the device as fast as it was then.
Duration SimulatedDevice::at_measured_speed(Duration duration, TimePoint now) const {
  const auto& speeds = noise_.exec_speeds;
  const Duration start = now - TimePoint();
  Duration at = start;
  auto next = std::upper_bound(speeds.begin(), speeds.end(), start,
                               [](Duration time, const DeviceSpeed& speed) { return time < speed.from; });
  double speed = next == speeds.begin() ? 1 : std::prev(next)->speed;
  for (; next != speeds.end(); speed = next->speed, ++next) {
    const Duration done = (next->from - at).scaled(speed);
    if (done >= duration) break;
    duration -= done;
    at = next->from;
  }
  return at + duration.scaled(1 / speed) - start;
}

Duration SimulatedDevice::noisy(Duration duration, double deviation, Duration jitter) {
  double factor = std::max(0.5, 1 + deviation * random_.normal());
  if (noise_.outlier_probability > 0 && random_.uniform() < noise_.outlier_probability) {
    factor *= noise_.outlier_factor;
  }
  return std::max(duration.scaled(factor) + jitter, duration.scaled(0.5));
}

Status SimulatedDevice::load(ModelId model, std::span<const PageIndex> pages) {
  if (load_fails(model)) return Status::internal("the simulated device fails");
  if (model.value() >= loaded_.size()) loaded_.resize(model.value() + 1);
  std::vector<PageIndex>& held = loaded_[model.value()];
  FOLIOT_CHECK(held.empty() && !pages.empty() && pages.size() == models_[model.value()]->only().pages);
  for (const PageIndex page : pages) use_page(page, true);
  held.assign(pages.begin(), pages.end());
  return Status();
}

void SimulatedDevice::unload(ModelId model) {
  FOLIOT_CHECK(is_loaded(model));
  for (const PageIndex page : loaded_[model.value()]) use_page(page, false);
  loaded_[model.value()].clear();
}

void SimulatedDevice::use_page(PageIndex page, bool use) {
  if (page >= pages_in_use_.size()) pages_in_use_.resize(page + 1);
  FOLIOT_CHECK(pages_in_use_[page] != use);
  pages_in_use_[page] = use;
}

void SimulatedDevice::input(const InferWork& /*work*/) {}

Status SimulatedDevice::run(const InferWork& work) {
  FOLIOT_CHECK(is_loaded(work.action.model));
  return execs_fail_ ? Status::internal("the simulated device fails") : Status();
}

void SimulatedDevice::output(const InferWork& work) {
  if (!readings_ || work.conditions == nullptr || work.counts == nullptr) return;
  for (uint32_t row = 0; row < work.action.rows.size(); ++row) {
    const VisitReading reading = readings_(work.action.rows[row]);
    work.conditions->set(row, reading.conditions);
    work.counts->set(row, reading.count);
  }
}

}  // namespace foliot
