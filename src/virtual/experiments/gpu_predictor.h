// What a policy expects of GpuModels beside each other: learned from samples of the simulated GPU.
#ifndef FOLIOT_VIRTUAL_EXPERIMENTS_GPU_PREDICTOR_H_
#define FOLIOT_VIRTUAL_EXPERIMENTS_GPU_PREDICTOR_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "control/controller/overlap_predictor.h"
#include "virtual/experiments/experiment.h"
#include "virtual/experiments/gpu_models.h"

namespace foliot {

// All sets of so many of so many models, by positions.
std::vector<std::vector<uint32_t>> sets_of_models(uint32_t size, uint32_t models);

// Also finds how large its errors are on held-out samples.
std::shared_ptr<const OverlapPredictor> learn_gpu_predictor(ExperimentRun& run, const std::vector<GpuModel>& models);

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_EXPERIMENTS_GPU_PREDICTOR_H_
