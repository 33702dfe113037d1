// StepModel: the ONNX model that a built-in step of a pipeline is (docs/STEPS.md).
//
// A step is compiled, packed, measured and run as every model. Most are made of standard
// operators; what those cannot do is an operator of the domain foliot
// (engine/compiler/operators/foliot.cc).
#ifndef FOLIOT_MODELS_STEPS_STEP_MODEL_H_
#define FOLIOT_MODELS_STEPS_STEP_MODEL_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "answer/pipelines/pipeline_spec.h"
#include "foundation/base/status.h"
#include "foundation/core/tensor.h"

namespace foliot {

// Of one row.
struct StepTensor {
  std::string name;
  DataType type = DataType::kFloat32;
  Shape shape;
};

struct StepModel {
  std::string onnx;                                     // the content of its file
  std::map<std::string, std::vector<int64_t>> buckets;  // as CompileOptions::buckets
  std::vector<StepTensor> outputs;
};

// `source`: what its input is taken from, where that is known; else the options `shape` and
// `type` have to say it, of steps that take tensors of any shape. Errors: kInvalidArgument
// naming step, option, value and limit.
// `folder`: the pipeline's, in which files that options name are.
Result<StepModel> make_step_model(const std::string& kind, const std::map<std::string, StepOption>& options,
                                  const std::optional<StepTensor>& source, const std::filesystem::path& folder = {});

}  // namespace foliot

#endif  // FOLIOT_MODELS_STEPS_STEP_MODEL_H_
