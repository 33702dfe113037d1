#include "control/policies/foliot/density_demand.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace foliot::foliot_policy {
namespace {

constexpr double kClassesPerOctave = 4;
// Requests per second of EXEC, of the lowest class.
constexpr double kDensityMin = 1e-4;

}  // namespace

uint32_t DensityDemand::density_class(double density) {
  const double octaves = std::log2(std::max(density, kDensityMin) / kDensityMin);
  return std::min(kClasses - 1, static_cast<uint32_t>(octaves * kClassesPerOctave));
}

void DensityDemand::set(ModelId model, KindId kind, double devices, double density) {
  forget(model);
  if (model.value() >= needs_.size()) needs_.resize(model.value() + 1);
  if (kind.value() >= kinds_.size()) kinds_.resize(kind.value() + 1);
  const uint32_t own_class = density_class(density);
  needs_[model.value()] = {kind, own_class, devices};
  kinds_[kind.value()][own_class] += devices;
}

// Rounding errors never leave a class below zero.
void DensityDemand::forget(ModelId model) {
  if (model.value() >= needs_.size()) return;
  Need& need = needs_[model.value()];
  if (need.devices == 0) return;
  double& sum = kinds_[need.kind.value()][need.density_class];
  sum = std::max(0.0, sum - need.devices);
  need.devices = 0;
}

double DensityDemand::denser(KindId kind, double density) const {
  if (kind.value() >= kinds_.size()) return 0;
  const std::array<double, kClasses>& classes = kinds_[kind.value()];
  return std::accumulate(classes.begin() + density_class(density) + 1, classes.end(), 0.0);
}

}  // namespace foliot::foliot_policy
