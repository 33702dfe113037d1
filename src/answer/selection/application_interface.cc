#include "answer/selection/application_interface.h"

#include <fmt/format.h>

#include <algorithm>

namespace foliot {
namespace {

// Of tensors of one type and shape.
std::string bound_text(const TensorSpec& spec) {
  if (!spec.bound) return "no bound";
  const std::string rows = fmt::format("rows of up to {}", to_string(spec.bound->shape));
  return spec.type == DataType::kBytes ? fmt::format("{} and {} bytes", rows, spec.bound->string_bytes) : rows;
}

// What differs; empty: nothing.
std::string difference(const char* kind, const std::vector<TensorSpec>& wanted, const std::vector<TensorSpec>& specs) {
  for (const TensorSpec& spec : wanted) {
    const auto found = std::ranges::find(specs, spec.name, &TensorSpec::name);
    if (found == specs.end()) return fmt::format("has no {} '{}'", kind, spec.name);
    if (found->type != spec.type) {
      return fmt::format("has {} '{}' of {}, not {}", kind, spec.name, to_string(found->type), to_string(spec.type));
    }
    if (found->shape != spec.shape) {
      return fmt::format("has {} '{}' of shape {}, not {}", kind, spec.name, to_string(found->shape),
                         to_string(spec.shape));
    }
    if (found->bound != spec.bound) {
      return fmt::format("has {} '{}' with {}, not {}", kind, spec.name, bound_text(*found), bound_text(spec));
    }
  }
  if (specs.size() == wanted.size()) return "";
  return fmt::format("has {} {}s, not {}", specs.size(), kind, wanted.size());
}

std::string difference(const ModelInfo& wanted, const ModelInfo& model) {
  if (model.batching != wanted.batching) return model.batching ? "has a batch dimension" : "has no batch dimension";
  const std::string inputs = difference("input", wanted.inputs, model.inputs);
  return inputs.empty() ? difference("output", wanted.outputs, model.outputs) : inputs;
}

// Why the application's settings do not fit its models; empty: they do.
std::string misfit(const Application& application, const std::vector<TensorSpec>& outputs) {
  const auto find = [&](const std::string& name) { return std::ranges::find(outputs, name, &TensorSpec::name); };
  const std::string& compared = application.agreement.output;
  if (!compared.empty() && find(compared) == outputs.end()) {
    return fmt::format("its models have no output '{}', which 'output' names", compared);
  }
  for (const TensorSpec& output : outputs) {
    if (application.asks_several && !can_combine(output)) {
      return fmt::format("output '{}' is {}, of which answers cannot be combined; choose a policy that asks one model",
                         output.name, to_string(output.type));
    }
  }
  for (const auto& [name, row] : application.defaults) {
    const auto output = find(name);
    if (output == outputs.end()) return fmt::format("its models have no output '{}', which [default] names", name);
    if (!can_combine(*output)) {
      return fmt::format("output '{}' is {}, which can have no default", name, to_string(output->type));
    }
    const bool variable = std::ranges::count(output->shape, -1) > 0;
    if (row.size() != 1 && (variable || row.size() != element_count(output->shape))) {
      return fmt::format("[default] has {} values for output '{}', a row of which has shape {}", row.size(), name,
                         to_string(output->shape));
    }
    if (variable) return fmt::format("output '{}' has a variable dimension and can have no default", name);
  }
  for (const TensorSpec& output : outputs) {
    if (application.defaults.empty() || application.defaults.contains(output.name)) continue;
    return fmt::format("[default] has no value for output '{}'", output.name);
  }
  return "";
}

std::string state_of(const std::string& model, const Catalog::EntryPtr& entry) {
  if (entry == nullptr) return fmt::format("'{}' is not in the repository", model);
  if (entry->role == EntryRole::kApplication) return fmt::format("'{}' is an application", model);
  if (entry->role == EntryRole::kPersonal) return fmt::format("'{}' is a personal model", model);
  return fmt::format("'{}' is {}{}{}", model, to_string(entry->state), entry->reason.empty() ? "" : ": ",
                     entry->reason);
}

// As clients see it. A call may have as many rows as all of its models take.
ModelInfo describe(const Application& application, std::span<const Catalog::EntryPtr> models,
                   const std::vector<bool>& available) {
  const ModelInfo* smallest = nullptr;
  std::optional<Duration> slo;
  for (size_t i = 0; i < models.size(); ++i) {
    if (!available[i]) continue;
    const ModelInfo& model = *models[i]->info;
    if (smallest == nullptr || model.batch_size_max() < smallest->batch_size_max()) smallest = &model;
    if (model.default_slo && (!slo || *model.default_slo < *slo)) slo = model.default_slo;
  }
  ModelInfo info = *smallest;
  info.id = ModelId();
  info.name = application.name;
  info.version = "1";
  info.content.clear();
  info.pipeline.reset();
  info.task.reset();
  info.default_slo = application.default_slo ? application.default_slo : slo;
  info.cache = false;
  return info;
}

}  // namespace

ApplicationInterface interface_of(const Application& application, std::span<const Catalog::EntryPtr> models) {
  ApplicationInterface interface;
  if (!application.status.ok()) {
    interface.reason = application.status.message();
    return interface;
  }
  interface.available.assign(models.size(), false);
  const ModelInfo* first = nullptr;
  size_t first_position = 0;
  bool loading = false;
  for (size_t i = 0; i < models.size(); ++i) {
    const Catalog::EntryPtr& entry = models[i];
    if (entry == nullptr || entry->role == EntryRole::kApplication || entry->role == EntryRole::kPersonal ||
        entry->state != ModelState::kReady || entry->info == nullptr) {
      loading = loading || (entry != nullptr && entry->state == ModelState::kLoading);
      interface.reason +=
          fmt::format("{}{}", interface.reason.empty() ? "" : "; ", state_of(application.models[i], entry));
      continue;
    }
    interface.available[i] = true;
    if (first == nullptr) {
      first = entry->info.get();
      first_position = i;
    } else if (const std::string differs = difference(*first, *entry->info); !differs.empty()) {
      interface.reason = fmt::format("model '{}' {}, as model '{}' has; they must have equal inputs and outputs",
                                     application.models[i], differs, application.models[first_position]);
      return interface;
    }
  }
  if (first == nullptr) {
    interface.state = loading ? ModelState::kLoading : ModelState::kUnavailable;
    return interface;
  }
  if (std::string why = misfit(application, first->outputs); !why.empty()) {
    interface.reason = std::move(why);
    return interface;
  }
  interface.state = ModelState::kReady;
  interface.info = std::make_shared<const ModelInfo>(describe(application, models, interface.available));
  return interface;
}

}  // namespace foliot
