#include "engine/compiler/declared_tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

namespace foliot {
namespace {

std::string shown(const std::vector<OnnxDimension>& dimensions) {
  std::vector<int64_t> extents;
  std::ranges::transform(dimensions, std::back_inserter(extents), &OnnxDimension::value);
  return fmt::format("[{}]", fmt::join(extents, ","));
}

bool agree(const std::vector<int64_t>& declared, const std::vector<OnnxDimension>& dimensions) {
  return std::ranges::equal(declared, dimensions, [](int64_t here, const OnnxDimension& there) {
    return here == -1 || there.value == -1 || here == there.value;
  });
}

std::vector<std::string> names_of(const std::vector<OnnxValueInfo>& values) {
  std::vector<std::string> names;
  std::ranges::transform(values, std::back_inserter(names), &OnnxValueInfo::name);
  return names;
}

Status check_one(const DeclaredTensor& tensor, const std::vector<OnnxValueInfo>& values) {
  const std::string called =
      fmt::format("{}: {} '{}'", tensor.where, tensor.is_output ? "output" : "input", tensor.name);
  const auto found = std::ranges::find(values, tensor.name, &OnnxValueInfo::name);
  if (found == values.end()) {
    return Status::invalid_argument(
        fmt::format("{} is none of the model's, which are '{}'", called, fmt::join(names_of(values), "', '")));
  }
  if (tensor.type && *tensor.type != found->type) {
    return Status::invalid_argument(fmt::format("{} is declared as {}, and the model has it as {}", called,
                                                to_string(*tensor.type), to_string(found->type)));
  }
  if (!tensor.dimensions || !found->dimensions || agree(*tensor.dimensions, *found->dimensions)) return Status();
  return Status::invalid_argument(
      fmt::format("{} is declared with the shape [{}], the batch included, and the model "
                  "has it with {}; -1 is any extent",
                  called, fmt::join(*tensor.dimensions, ","), shown(*found->dimensions)));
}

void fix_symbol(const std::string& symbol, int64_t extent, std::vector<OnnxValueInfo>& values) {
  for (OnnxValueInfo& value : values) {
    if (!value.dimensions) continue;
    for (OnnxDimension& dimension : *value.dimensions) {
      if (dimension.value == -1 && dimension.symbol == symbol) dimension = {.value = extent, .symbol = ""};
    }
  }
}

}  // namespace

void fix_declared_extents(const std::vector<DeclaredTensor>& declared,
                          const std::map<std::string, std::vector<int64_t>>& buckets, OnnxModel& model) {
  for (const DeclaredTensor& tensor : declared) {
    const auto input = std::ranges::find(model.inputs, tensor.name, &OnnxValueInfo::name);
    if (tensor.is_output || input == model.inputs.end() || !tensor.dimensions || !input->dimensions) continue;
    const size_t rank = input->dimensions->size();
    for (size_t axis = 1; axis < rank && rank == tensor.dimensions->size(); ++axis) {
      const OnnxDimension dimension = (*input->dimensions)[axis];
      const int64_t extent = (*tensor.dimensions)[axis];
      if (dimension.value != -1 || extent < 1 || buckets.contains(dimension.symbol)) continue;
      (*input->dimensions)[axis] = {.value = extent, .symbol = ""};
      if (dimension.symbol.empty()) continue;
      fix_symbol(dimension.symbol, extent, model.inputs);
      fix_symbol(dimension.symbol, extent, model.outputs);
    }
  }
}

Status check_declared_tensors(const std::vector<DeclaredTensor>& declared, const OnnxModel& model) {
  for (const DeclaredTensor& tensor : declared) {
    FOLIOT_RETURN_IF_ERROR(check_one(tensor, tensor.is_output ? model.outputs : model.inputs));
  }
  const auto first = std::ranges::find(declared, false, &DeclaredTensor::is_output);
  if (first == declared.end()) return Status();
  for (const OnnxValueInfo& input : model.inputs) {
    const bool is_there = std::ranges::any_of(
        declared, [&](const DeclaredTensor& tensor) { return !tensor.is_output && tensor.name == input.name; });
    if (is_there) continue;
    return Status::invalid_argument(
        fmt::format("{}: the model's input '{}' is not among the inputs that are declared", first->where, input.name));
  }
  return Status();
}

std::string fingerprint_of(const std::vector<DeclaredTensor>& declared) {
  std::string text;
  for (const DeclaredTensor& tensor : declared) {
    text += fmt::format("\n{}:{} {} {}", tensor.name.size(), tensor.name, tensor.is_output,
                        tensor.type ? to_string(*tensor.type) : "");
    if (tensor.dimensions) text += fmt::format(" [{}]", fmt::join(*tensor.dimensions, ","));
  }
  return text;
}

}  // namespace foliot
