#include "engine/device/cpu/nan_watch.h"

#include <xmmintrin.h>

#include <algorithm>
#include <cstring>

#include "engine/device/cpu/families.h"
#include "engine/device/cpu/fusion.h"
#include "engine/device/cpu/layout.h"

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

bool has_fractions(const Tensor& tensor) {
  const bool floating = tensor.type == DataType::kFloat16 || tensor.type == DataType::kBfloat16 ||
                        tensor.type == DataType::kFloat32 || tensor.type == DataType::kFloat64;
  return floating && tensor.bytes > 0 && tensor.place != Place::kWeights;
}

// Whether the first dimension is the outermost in memory and in no blocks.
bool lies_by_row(const Tensor& tensor) {
  if (tensor.layout.empty()) return true;
  const auto descriptor = read_layout(tensor.type, tensor.layout);
  if (!descriptor.ok() || descriptor->data.ndims == 0) return false;
  const dnnl_blocking_desc_t& blocking = descriptor->data.format_desc.blocking;
  const std::span<const dnnl_dim_t> blocked(blocking.inner_idxs, static_cast<size_t>(blocking.inner_nblks));
  const auto elements = static_cast<uint64_t>(blocking.strides[0] * descriptor->data.dims[0]);
  return std::ranges::find(blocked, 0) == blocked.end() && elements * size_of(tensor.type) == tensor.bytes;
}

// Whether some element is NaN or infinite: all bits of its exponent are set.
template <typename Bits>
bool has_no_number(const std::byte* from, uint64_t bytes, Bits exponent) {
  bool found = false;
  for (uint64_t at = 0; at + sizeof(Bits) <= bytes; at += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, from + at, sizeof bits);
    found |= (bits & exponent) == exponent;
  }
  return found;
}

bool has_no_number(const std::byte* from, uint64_t bytes, DataType type) {
  switch (type) {
    case DataType::kFloat16: return has_no_number<uint16_t>(from, bytes, 0x7c00);
    case DataType::kBfloat16: return has_no_number<uint16_t>(from, bytes, 0x7f80);
    case DataType::kFloat32: return has_no_number<uint32_t>(from, bytes, 0x7f800000);
    case DataType::kFloat64: return has_no_number<uint64_t>(from, bytes, 0x7ff0000000000000);
    default: return false;
  }
}

}  // namespace

NanWatch::NanWatch(const Plan& plan) : batch_size_(std::min(plan.batch_size, kBatchSizeMax)) {
  for (size_t i = 0; i < plan.operators.size(); ++i) {
    const Operator& operation = plan.operators[i];
    if (!loses_nan(plan, operation)) continue;
    operands_.resize(i + 1);
    const bool known = operation.attributes.has(kNanRows) && operation.attributes.integer(kNanRows) == plan.batch_size;
    for (TensorIndex input : operation.inputs)
      if (input != kNoTensor && has_fractions(plan.tensors.at(input)))
        operands_[i].push_back(watched(plan, input, known && lies_by_row(plan.tensors[input]) ? plan.batch_size : 1));
  }
  for (TensorIndex input : plan.inputs) {
    const Tensor& tensor = plan.tensors.at(input);
    if (!has_fractions(tensor)) continue;
    const bool has_rows = !tensor.shape.empty() && tensor.shape[0] == int64_t{plan.batch_size};
    inputs_.push_back(watched(plan, input, has_rows ? plan.batch_size : 1));
  }
}

NanWatch::Watched NanWatch::watched(const Plan& plan, TensorIndex index, uint32_t rows) const {
  const Tensor& tensor = plan.tensors[index];
  return {.tensor = index, .row_bytes = tensor.bytes / rows, .rows = rows, .type = tensor.type};
}

void NanWatch::begin() {
  if (const unsigned state = _mm_getcsr(); (state & kInvalidOperation) != 0) _mm_setcsr(state & ~kInvalidOperation);
}

void NanWatch::end(size_t operation, std::span<std::byte* const> addresses, RowSet& failed_rows) const {
  if ((_mm_getcsr() & kInvalidOperation) == 0) return;
  RowSet blamed;
  const auto blame = [&](const std::vector<Watched>& tensors) {
    for (const Watched& it : tensors) {
      for (uint32_t row = 0; row < it.rows; ++row) {
        if (!has_no_number(addresses[it.tensor] + row * it.row_bytes, it.row_bytes, it.type)) continue;
        const uint32_t last = it.rows == 1 ? batch_size_ : row + 1;
        for (uint32_t to_blame = row; to_blame < last; ++to_blame) blamed.set(to_blame);
      }
    }
    return blamed.any();
  };
  if (!blame(operands_[operation]) && !blame(inputs_))
    for (uint32_t row = 0; row < batch_size_; ++row) blamed.set(row);
  failed_rows |= blamed;
}

}  // namespace foliot
