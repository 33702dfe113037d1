#include "engine/device/cpu/operator_view.h"

#include <utility>

#include "foundation/base/check.h"

namespace foliot {
namespace {

// The tensor that owns the storage, and how far into it this one begins.
std::pair<TensorIndex, uint64_t> storage(const std::vector<Tensor>& tensors, TensorIndex tensor) {
  const Tensor& it = tensors.at(tensor);
  if (it.alias_of == kNoTensor) return {tensor, 0};
  return {it.alias_of, it.alias_offset};
}

}  // namespace

Descriptor OperatorView::descriptor(TensorIndex tensor, const Shape& shape) const {
  const Tensor& it = tensors_.at(tensor);
  if (it.layout.empty()) return dense_descriptor(it.type, shape);
  Result<Descriptor> read = read_layout(it.type, it.layout);
  FOLIOT_CHECK(read.ok());
  return std::move(read).value();
}

bool OperatorView::same_storage(TensorIndex a, TensorIndex b) const {
  return storage(tensors_, a) == storage(tensors_, b);
}

}  // namespace foliot
