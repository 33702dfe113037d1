#include "engine/device/cpu/nan_watch.h"

#include <xmmintrin.h>

#include <algorithm>

#include "engine/device/cpu/families.h"
#include "engine/device/cpu/fusion.h"

namespace foliot {
namespace {

constexpr unsigned kInvalidOperation = 1;  // of MXCSR: an operation met NaN that it does not pass on, or made one

bool loses_nan(const Plan& plan, const Operator& operation) {
  if (operation.kernel.starts_with(kOwnKernel) || operation.inputs.empty()) return false;
  if (plan.tensors.at(operation.inputs[0]).type == DataType::kUint8) return false;  // which has no NaN
  return std::ranges::any_of(operation.post_operations,
                             [](const PostOperation& post) { return loses_nan(post.function); }) ||
         (operation.attributes.has("function") && loses_nan(operation.attributes.function()));
}

// Whether some element is NaN or infinite: all bits of its exponent are set.
template <typename Bits>
bool has_no_number(const std::byte* from, uint64_t count, Bits exponent) {
  const Bits* bits = reinterpret_cast<const Bits*>(from);
  bool found = false;
  for (uint64_t i = 0; i < count; ++i) found |= (bits[i] & exponent) == exponent;
  return found;
}

bool has_no_number(const std::byte* from, uint64_t count, DataType type) {
  switch (type) {
    case DataType::kFloat16: return has_no_number<uint16_t>(from, count, 0x7c00);
    case DataType::kBfloat16: return has_no_number<uint16_t>(from, count, 0x7f80);
    case DataType::kFloat32: return has_no_number<uint32_t>(from, count, 0x7f800000);
    case DataType::kFloat64: return has_no_number<uint64_t>(from, count, 0x7ff0000000000000);
    default: return false;
  }
}

}  // namespace

NanWatch::NanWatch(const Plan& plan)
    : needed_(std::ranges::any_of(plan.operators, [&](const Operator& it) { return loses_nan(plan, it); })),
      batch_size_(plan.batch_size) {
  for (TensorIndex input : plan.inputs) {
    const Tensor& tensor = plan.tensors.at(input);
    const bool floating = tensor.type == DataType::kFloat16 || tensor.type == DataType::kBfloat16 ||
                          tensor.type == DataType::kFloat32 || tensor.type == DataType::kFloat64;
    if (!floating || tensor.bytes == 0) continue;
    const bool has_rows = !tensor.shape.empty() && tensor.shape[0] == int64_t{batch_size_};
    const uint32_t rows = has_rows ? batch_size_ : 1;
    inputs_.push_back({tensor.offset, tensor.bytes / size_of(tensor.type) / rows, rows, tensor.type});
  }
}

void NanWatch::begin() const { _mm_setcsr(_mm_getcsr() & ~kInvalidOperation); }

void NanWatch::end(const std::byte* input, RowSet* failed_rows) const {
  if ((_mm_getcsr() & kInvalidOperation) == 0 || failed_rows == nullptr) return;
  for (const Watched& watched : inputs_) {
    const uint64_t bytes = watched.row_elements * size_of(watched.type);
    for (uint32_t row = 0; row < watched.rows; ++row) {
      if (!has_no_number(input + watched.offset + row * bytes, watched.row_elements, watched.type)) continue;
      const uint32_t last = std::min(watched.rows == 1 ? batch_size_ : row + 1, kBatchSizeMax);
      for (uint32_t it = row; it < last; ++it) failed_rows->set(it);
    }
  }
}

}  // namespace foliot
