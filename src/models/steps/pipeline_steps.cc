#include "models/steps/pipeline_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

namespace foliot {
namespace fs = std::filesystem;
namespace {

using Tensors = std::map<std::pair<std::string, std::string>, StepTensor>;  // by stage and name

// The first that is known: those of one input have to be alike.
std::optional<StepTensor> source_of(const StageSpec& stage, const Tensors& known) {
  for (const auto& [input, sources] : stage.inputs) {
    for (const TensorName& source : sources) {
      const auto found = known.find({source.stage, source.tensor});
      if (found == known.end()) continue;
      StepTensor tensor = found->second;
      if (source.each && !tensor.shape.empty()) tensor.shape.erase(tensor.shape.begin());
      return tensor;
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<PipelineStep> steps_of(const PipelineSpec& spec) {
  std::vector<PipelineStep> steps;
  Tensors known;
  for (const StageSpec& stage : spec.stages) {
    if (stage.step.empty()) continue;
    Result<StepModel> model =
        make_step_model(stage.step, stage.options, source_of(stage, known), fs::path(spec.file).parent_path());
    if (model.ok()) {
      for (const StepTensor& output : model->outputs) {
        StepTensor& tensor = known[{stage.name, output.name}] = output;
        if (stage.for_each) tensor.shape.insert(tensor.shape.begin(), stage.for_each->at_most);
      }
    } else {
      model = model.status().with_context(fmt::format("{}:{}: stage '{}'", spec.file, stage.line, stage.name));
    }
    steps.push_back({.name = spec.name + "." + stage.name, .model = std::move(model)});
  }
  return steps;
}

}  // namespace foliot
