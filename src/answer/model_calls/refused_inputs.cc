#include "answer/model_calls/refused_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include "answer/inference/foreign_clients.h"

namespace foliot {
namespace {

template <typename T, typename Visit>
void for_each_element(const InferenceCall& call, uint32_t index, const Visit& visit) {
  for (uint32_t row = 0; row < call.rows(); ++row) {
    const std::span<const std::byte> bytes = call.input(row, index);
    for (size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
      T value;
      std::memcpy(&value, bytes.data() + i, sizeof(T));
      visit(row, i / sizeof(T), value);
    }
  }
}

template <typename T>
std::string describe_range(const InferenceCall& call, uint32_t index) {
  T least = std::numeric_limits<T>::max(), greatest = std::numeric_limits<T>::lowest();
  for_each_element<T>(call, index, [&](uint32_t, size_t, T value) {
    least = std::min(least, value);
    greatest = std::max(greatest, value);
  });
  if (greatest < least) return {};
  return fmt::format("input '{}' holds {} to {}", call.model().inputs[index].name, least, greatest);
}

template <typename T>
std::string describe_no_number(const InferenceCall& call, uint32_t index) {
  std::string found;
  for_each_element<T>(call, index, [&](uint32_t row, size_t element, T value) {
    if (!found.empty() || std::isfinite(value)) return;
    found =
        fmt::format("input '{}' holds {} (row {}, element {})", call.model().inputs[index].name, value, row, element);
  });
  return found;
}

std::string describe(const InferenceCall& call, uint32_t index) {
  switch (call.model().inputs[index].type) {
    case DataType::kInt32: return describe_range<int32_t>(call, index);
    case DataType::kInt64: return describe_range<int64_t>(call, index);
    case DataType::kFloat32: return describe_no_number<float>(call, index);
    case DataType::kFloat64: return describe_no_number<double>(call, index);
    default: return {};
  }
}

}  // namespace

bool is_compiled(const ModelInfo& model) {
  return model.pipeline == nullptr && model.task == nullptr && !is_container(model);
}

std::string describe_refused_inputs(const InferenceCall& call) {
  std::string result;
  for (uint32_t index = 0; index < call.model().inputs.size(); ++index) {
    const std::string found = describe(call, index);
    if (!found.empty()) result += (result.empty() ? "" : ", ") + found;
  }
  return result;
}

}  // namespace foliot
