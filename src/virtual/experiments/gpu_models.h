// GpuModels: the seven models of the Abacus paper (Table 1) on a simulated GPU like the
// A100: their operators, how long these take, and what share of compute and of memory
// bandwidth they use (virtual/world/resource_model.h).
//
// The paper gives operator counts and says which models saturate the GPU; durations and
// shares are ours: chosen so that two queries in turn at 50 queries/s do not saturate it on
// average, that deadlines (twice the longest query) are 50 to 100 ms, and that operators of
// VGG leave next to nothing to others. A bucket stands for a batch size (4, 8, 16, 32).
#ifndef FOLIOT_VIRTUAL_EXPERIMENTS_GPU_MODELS_H_
#define FOLIOT_VIRTUAL_EXPERIMENTS_GPU_MODELS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "control/controller/overlap_predictor.h"
#include "foundation/base/random.h"
#include "foundation/base/time.h"
#include "foundation/core/model_info.h"
#include "planning/profiling/overlap_sample.h"
#include "virtual/world/simulated_device.h"

namespace foliot {

inline constexpr uint32_t kGpuBuckets = 4;
inline constexpr uint32_t kGpuLanes = 4;  // each of which runs an EXEC as fast as all, alone

struct GpuModel {
  std::string name;
  Duration qos;
  std::vector<double> operator_ends;
  std::vector<Duration> exec;                       // by bucket
  std::vector<std::vector<OperatorShares>> shares;  // [bucket][operator]

  std::shared_ptr<ModelInfo> info(ModelId id) const;
  ProfiledModel profile() const;  // on a device of kGpuLanes
  std::vector<OperatorLoad> loads(uint32_t bucket, OperatorRange range) const;
};

// Res50, Res101, Res152, IncepV3, VGG16, VGG19, Bert.
std::vector<GpuModel> gpu_models();

// A group of these of the models, by their positions, and how long it takes (virtual/world/resource_model.h).
OverlapSample sample_group(std::span<const GpuModel> models, std::span<const uint32_t> of, Random& random);

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_EXPERIMENTS_GPU_MODELS_H_
