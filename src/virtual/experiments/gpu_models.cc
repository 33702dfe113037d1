#include "virtual/experiments/gpu_models.h"

#include <algorithm>
#include <array>

#include "foundation/core/lanes.h"
#include "planning/profiling/group_sampling.h"

namespace foliot {
namespace {

struct GpuShape {
  const char* name;
  uint32_t operators;
  double longest_ms;  // of 32 images or sequences
  double fixed;       // share of that which a query takes however small
  // Shares of the smallest and the largest query: the mean over its operators.
  double compute_small, compute_large, memory_small, memory_large;
};
constexpr std::array<GpuShape, 7> kShapes{{{"Res50", 125, 25, 0.15, 0.30, 0.60, 0.30, 0.50},
                                           {"Res101", 241, 36, 0.15, 0.28, 0.55, 0.28, 0.48},
                                           {"Res152", 363, 50, 0.15, 0.27, 0.53, 0.27, 0.47},
                                           {"IncepV3", 217, 32, 0.20, 0.24, 0.48, 0.25, 0.42},
                                           {"VGG16", 38, 26, 0.05, 0.90, 0.97, 0.45, 0.55},
                                           {"VGG19", 44, 31, 0.05, 0.91, 0.97, 0.45, 0.55},
                                           {"Bert", 160, 36, 0.10, 0.45, 0.75, 0.30, 0.45}}};
constexpr std::array<double, kGpuBuckets> kBatchShares{4 / 32.0, 8 / 32.0, 16 / 32.0, 1};

GpuModel make(const GpuShape& shape, Random& random) {
  GpuModel model{.name = shape.name, .qos = Duration::from_milliseconds(2 * shape.longest_ms)};
  double sum = 0;
  for (uint32_t i = 0; i < shape.operators; ++i) model.operator_ends.push_back(sum += 0.3 + 1.4 * random.uniform());
  for (double& end : model.operator_ends) end /= sum;
  model.operator_ends.back() = 1;
  // Operators differ by as much from small queries to large ones.
  std::vector<std::pair<double, double>> relative;
  for (uint32_t i = 0; i < shape.operators; ++i) {
    relative.emplace_back(0.6 + 0.8 * random.uniform(), 0.4 + 1.2 * random.uniform());
  }
  for (const double batch : kBatchShares) {
    model.exec.push_back(Duration::from_milliseconds(shape.longest_ms * (shape.fixed + (1 - shape.fixed) * batch)));
    std::vector<OperatorShares>& shares = model.shares.emplace_back();
    const double compute = shape.compute_small + (shape.compute_large - shape.compute_small) * batch;
    const double memory = shape.memory_small + (shape.memory_large - shape.memory_small) * batch;
    for (const auto& [of_compute, of_memory] : relative) {
      shares.push_back({std::min(1.0, compute * of_compute), std::min(1.0, memory * of_memory)});
    }
  }
  return model;
}

}  // namespace

std::shared_ptr<ModelInfo> GpuModel::info(ModelId id) const {
  auto info = std::make_shared<ModelInfo>();
  info->id = id;
  info->name = info->content = name;
  info->buckets.resize(kGpuBuckets);
  info->only().seed_load = Duration::milliseconds(10);
  for (const Duration each : exec) info->only().seed_exec.push_back({each});
  info->only().operator_ends = operator_ends;
  info->default_slo = qos;
  return info;
}

std::vector<OperatorLoad> GpuModel::loads(uint32_t bucket, OperatorRange range) const {
  std::vector<OperatorLoad> loads;
  const auto last = std::min(range.last, static_cast<uint32_t>(operator_ends.size()));
  for (uint32_t i = range.first; i < last; ++i) {
    const double share = operator_ends[i] - (i == 0 ? 0 : operator_ends[i - 1]);
    loads.push_back({exec[bucket].scaled(share), shares[bucket][i].compute, shares[bucket][i].memory});
  }
  return loads;
}

std::vector<GpuModel> gpu_models() {
  Random random(20211114);  // part of the setting, not of a run
  std::vector<GpuModel> models;
  for (const GpuShape& shape : kShapes) models.push_back(make(shape, random));
  return models;
}

ProfiledModel GpuModel::profile() const {
  ProfiledModel profile{.name = name, .content = name, .operators = static_cast<uint32_t>(operator_ends.size())};
  for (const Duration whole : exec) {
    std::vector<float> ends;
    for (const double end : operator_ends) ends.push_back(static_cast<float>(whole.nanoseconds() * end));
    profile.ends.emplace_back(width_count(kGpuLanes), ends);
  }
  return profile;
}

OverlapSample sample_group(std::span<const GpuModel> models, std::span<const uint32_t> of, Random& random) {
  std::vector<uint32_t> operators;
  for (const uint32_t model : of) operators.push_back(static_cast<uint32_t>(models[model].operator_ends.size()));
  const std::vector<OperatorRange> ranges = draw_ranges(operators, random);
  OverlapSample sample;
  std::vector<std::vector<OperatorLoad>> loads;
  for (size_t i = 0; i < of.size(); ++i) {
    const auto bucket = static_cast<uint32_t>(random.below(kGpuBuckets));
    sample.parts.push_back({of[i], bucket, ranges[i]});
    loads.push_back(models[of[i]].loads(bucket, ranges[i]));
  }
  sample.together = time_together(loads);
  return sample;
}

}  // namespace foliot
