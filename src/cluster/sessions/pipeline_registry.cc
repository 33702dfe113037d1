#include "cluster/sessions/pipeline_registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "answer/pipelines/pipeline_file.h"

namespace foliot {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string text_of(const std::vector<std::string>& lines) { return fmt::format("{}\n", fmt::join(lines, "\n")); }

PipelineSpec PipelineKind::parse(const Definition& pipeline) {
  return parse_pipeline(pipeline.name, pipeline.name + "/pipeline.toml", text_of(pipeline.lines));
}

std::string PipelineKind::missing(const Spec& spec, const ModelsByName& models) {
  std::string reason;
  for (const StageSpec& stage : spec.stages) {
    if (models.contains(stage.model)) continue;
    reason += fmt::format("{}stage '{}' needs model '{}', which is not served", reason.empty() ? "" : "; ", stage.name,
                          stage.model);
  }
  return reason;
}

bool PipelineKind::is_made_of(const ModelInfo& info, const Spec& spec, const ModelsByName& models) {
  return std::ranges::equal(
      info.pipeline->stages, spec.stages,
      [&](const PipelineStage& stage, const StageSpec& named) { return stage.model == models.at(named.model); });
}

std::vector<ModelId> PipelineKind::models_of(const ModelInfo& info) {
  std::vector<ModelId> models;
  for (const PipelineStage& stage : info.pipeline->stages) models.push_back(stage.model->id);
  return models;
}

std::vector<std::string> PipelineKind::model_names(const ModelInfo& info) {
  std::vector<std::string> names;
  for (const PipelineStage& stage : info.pipeline->stages) names.push_back(stage.model->name);
  return names;
}

}  // namespace foliot
