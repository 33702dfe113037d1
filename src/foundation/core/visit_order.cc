#include "foundation/core/visit_order.h"

#include <algorithm>

namespace foliot {

std::vector<uint32_t> answers_of(const PipelineInfo& pipeline, uint32_t stage) {
  std::vector<uint32_t> answers;
  for (const PipelineInfo::Output& output : pipeline.outputs) {
    for (const TensorSource& source : output.sources) {
      if (source.stage == stage) answers.push_back(source.tensor);
    }
  }
  std::ranges::sort(answers);
  answers.erase(std::unique(answers.begin(), answers.end()), answers.end());
  return answers;
}

bool has_consumers(const PipelineInfo& pipeline, uint32_t stage) {
  return std::ranges::any_of(pipeline.stages, [stage](const PipelineStage& other) {
    return std::ranges::any_of(other.inputs, [stage](const auto& sources) {
      return std::ranges::any_of(sources, [stage](const TensorSource& source) { return source.stage == stage; });
    });
  });
}

}  // namespace foliot
