#include "answer/tasks/task_interface.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace foliot {
namespace {

std::string difference(std::string_view kind, const std::vector<TensorSpec>& wanted,
                       const std::vector<TensorSpec>& specs) {
  if (specs.size() != wanted.size()) return fmt::format("has {} {}s, not {}", specs.size(), kind, wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    const TensorSpec& spec = wanted[i];
    const TensorSpec& its = specs[i];
    if (its.name != spec.name) {
      return fmt::format("has '{}' as {} {}, not '{}'", its.name, kind, i + 1, spec.name);
    }
    if (its.type != spec.type) {
      return fmt::format("has {} '{}' of {}, not {}", kind, spec.name, to_string(its.type), to_string(spec.type));
    }
    if (its.shape != spec.shape || its.dimension_names != spec.dimension_names) {
      return fmt::format("has {} '{}' of shape {}, not {}", kind, spec.name, to_string(its.shape),
                         to_string(spec.shape));
    }
  }
  return "";
}

}  // namespace

std::string interface_difference(const ModelInfo& wanted, const ModelInfo& model) {
  if (model.batching != wanted.batching) return model.batching ? "has a batch dimension" : "has no batch dimension";
  if (std::string inputs = difference("input", wanted.inputs, model.inputs); !inputs.empty()) return inputs;
  if (std::string outputs = difference("output", wanted.outputs, model.outputs); !outputs.empty()) return outputs;
  if (std::ranges::equal(wanted.buckets, model.buckets, {}, &Bucket::dimensions, &Bucket::dimensions)) return "";
  return "has other buckets";
}

Result<std::shared_ptr<const ModelInfo>> describe_task(const TaskSpec& spec, std::vector<TaskVariant> variants,
                                                       ServedTaskId id) {
  const ModelInfo& first = *variants.front().model;
  const ModelInfo* smallest = &first;
  for (const TaskVariant& variant : variants) {
    if (const std::string differs = interface_difference(first, *variant.model); !differs.empty()) {
      return Status::invalid_argument(
          fmt::format("{}: variant '{}' {}, as variant '{}' has; variants must have equal inputs, outputs and buckets",
                      spec.file, variant.model->name, differs, first.name));
    }
    if (variant.model->batch_size_max() < smallest->batch_size_max()) smallest = variant.model.get();
  }
  auto task = std::make_shared<TaskInfo>();
  task->id = id;
  task->name = spec.name;
  task->accuracy = spec.accuracy;
  task->default_slo = spec.default_slo;
  ModelInfo info{.name = spec.name};
  info.batching = first.batching;
  info.inputs = first.inputs;
  info.outputs = first.outputs;
  info.buckets = first.buckets;
  info.runnables = {{.batch_sizes = smallest->batch_sizes()}};
  info.default_slo = spec.default_slo;
  task->variants = std::move(variants);
  info.task = std::move(task);
  return std::make_shared<const ModelInfo>(std::move(info));
}

}  // namespace foliot
