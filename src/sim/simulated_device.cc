#include "sim/simulated_device.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace foliot {

void SimulatedDevice::add_model(std::shared_ptr<const ModelInfo> model) {
  const uint32_t id = model->id.value();
  if (id >= models_.size()) models_.resize(id + 1);
  models_[id] = std::move(model);
}

Duration SimulatedDevice::duration(std::string_view executor, const Action& action, TimePoint now) {
  if (executor == "input" || executor == "output") {
    return noise_.copy * static_cast<int64_t>(action.rows.size());
  }
  if (action.type == ActionType::kUnload) return Duration();
  const ModelInfo& model = *models_[action.model.value()];
  if (action.type == ActionType::kLoad) return noisy(model.seed_load, noise_.load_deviation);
  const auto& sizes = model.batch_sizes;
  const auto index = std::find(sizes.begin(), sizes.end(), action.batch_size) - sizes.begin();
  drift_ = std::min(drift_ * (1 + noise_.exec_drift), noise_.exec_drift_max);
  const Duration seed = model.buckets[action.bucket.value()].seed_exec[static_cast<size_t>(index)];
  if (!noise_.exec_speeds.empty()) return at_measured_speed(seed.scaled(drift_), now);
  return noisy(seed.scaled(drift_), noise_.exec_deviation);
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

Duration SimulatedDevice::noisy(Duration duration, double deviation) {
  double factor = std::max(0.5, 1 + deviation * random_.normal());
  if (noise_.outlier_probability > 0 && random_.uniform() < noise_.outlier_probability) {
    factor *= noise_.outlier_factor;
  }
  return duration.scaled(factor);
}

Status SimulatedDevice::load(ModelId model, std::span<const PageIndex> pages) {
  if (model.value() >= loaded_.size()) loaded_.resize(model.value() + 1);
  std::vector<PageIndex>& held = loaded_[model.value()];
  FOLIOT_CHECK(held.empty() && !pages.empty() && pages.size() == models_[model.value()]->pages);
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

Status SimulatedDevice::exec(const InferWork& work) {
  FOLIOT_CHECK(is_loaded(work.action.model));
  return Status();
}

void SimulatedDevice::output(const InferWork& /*work*/) {}

}  // namespace foliot
