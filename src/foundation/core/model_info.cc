#include "foundation/core/model_info.h"

#include <algorithm>
#include <set>

#include "foundation/base/check.h"
#include "foundation/core/bounded_row.h"

namespace foliot {

bool is_kind_name(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == ':' ||
           c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= kKindBytesMax && std::ranges::all_of(name, allowed);
}

const Runnable* ModelInfo::find(std::string_view kind) const {
  const auto found = std::ranges::find(runnables, kind, &Runnable::kind);
  return found == runnables.end() ? nullptr : &*found;
}

const Runnable& ModelInfo::only() const {
  FOLIOT_CHECK(runnables.size() == 1);
  return runnables.front();
}

Runnable& ModelInfo::only() {
  FOLIOT_CHECK(runnables.size() == 1);
  return runnables.front();
}

std::vector<uint32_t> ModelInfo::batch_sizes() const {
  std::set<uint32_t> sizes;
  for (const Runnable& runnable : runnables) sizes.insert(runnable.batch_sizes.begin(), runnable.batch_sizes.end());
  return {sizes.begin(), sizes.end()};
}

uint32_t ModelInfo::batch_size_max() const {
  uint32_t largest = 0;
  for (const Runnable& runnable : runnables) largest = std::max(largest, runnable.batch_sizes.back());
  return largest;
}

std::string ModelInfo::kinds() const {
  std::string kinds;
  for (const Runnable& runnable : runnables) kinds += (kinds.empty() ? "" : ", ") + runnable.kind;
  return kinds;
}

ModelInfo with_batch_sizes(ModelInfo model, size_t count) {
  for (Runnable& runnable : model.runnables) {
    const size_t left = std::min(count, runnable.batch_sizes.size());
    runnable.batch_sizes.resize(left);
    for (std::vector<Duration>& seeds : runnable.seed_exec) seeds.resize(left);
  }
  return model;
}

ModelInfo only_for(std::string_view kind, const ModelInfo& model) {
  const Runnable* own = model.find(kind);
  FOLIOT_CHECK(own != nullptr);
  ModelInfo result = model;
  result.runnables = {*own};
  return result;
}

Shape shape_in(const TensorSpec& tensor, const Bucket& bucket) {
  if (tensor.bound) return tensor.bound->shape;
  Shape shape = tensor.shape;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] >= 0) continue;
    const auto declared = bucket.dimensions.find(tensor.dimension_names[i]);
    FOLIOT_CHECK(declared != bucket.dimensions.end());
    shape[i] = declared->second;
  }
  return shape;
}

uint64_t row_bytes(const TensorSpec& tensor, const Bucket& bucket) {
  return tensor.bound ? bounded_row_bytes(tensor) : byte_size(tensor.type, shape_in(tensor, bucket));
}

}  // namespace foliot
