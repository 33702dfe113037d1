#include "node/files/offered_definitions.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

#include "answer/pipelines/pipeline_file.h"
#include "answer/tasks/task_file.h"
#include "cluster/sessions/pipeline_registry.h"

namespace foliot {
namespace {

std::vector<std::string> lines_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return lines_of(text);
}

// Adds it to those that are offered. `status`: whether its files can be used.
template <typename Definition>
void offer(Definition definition, std::string_view what, const Status& status, std::vector<Definition>& offered,
           std::vector<std::string>& notes) {
  if (!status.ok()) {
    notes.push_back(fmt::format("{} '{}' cannot be served: {}", what, definition.name, status.message()));
  }
  size_t lines = definition.lines.size();
  if constexpr (requires { definition.accuracies; }) lines = std::max(lines, definition.accuracies.size());
  if (offered.size() < kDefinitionsMax && lines <= kDefinitionLinesMax) {
    offered.push_back(std::move(definition));
    return;
  }
  notes.push_back(fmt::format("{} '{}' is not offered: {} lines, and at most {} of {} {}s are", what, definition.name,
                              lines, kDefinitionLinesMax, kDefinitionsMax, what));
}

}  // namespace

Result<Pipelines> read_offered_pipelines(const std::filesystem::path& repository, std::vector<std::string>& notes) {
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<PipelineSpec> found, scan_pipelines(repository));
  Pipelines pipelines;
  for (const PipelineSpec& spec : found) {
    offer({.id = {}, .name = spec.name, .lines = lines_of_file(spec.file)}, "pipeline", spec.status,
          pipelines.pipelines, notes);
  }
  return pipelines;
}

Result<Tasks> read_offered_tasks(const std::filesystem::path& repository, std::vector<std::string>& notes) {
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<TaskSpec> found, scan_tasks(repository));
  Tasks tasks;
  for (const TaskSpec& spec : found) {
    Tasks::Task task{.id = {}, .name = spec.name, .lines = lines_of_file(spec.file)};
    // Of a broken one it may lie anywhere.
    if (spec.status.ok() && !spec.accuracies_file.empty()) {
      task.accuracies = lines_of_file(std::filesystem::path(spec.file).parent_path() / spec.accuracies_file);
    }
    offer(std::move(task), "task", spec.status, tasks.tasks, notes);
  }
  return tasks;
}

}  // namespace foliot
