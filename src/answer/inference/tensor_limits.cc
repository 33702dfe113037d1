#include "answer/inference/tensor_limits.h"

#include <fmt/format.h>

#include "foundation/base/units.h"

namespace foliot {

Status check(const TensorLimits& limits, const Query& query) {
  const auto too_many = [&](size_t count, std::string_view what) {
    return Status::invalid_argument(
        fmt::format("{} {} in one call; {} are allowed (--tensors-max)", count, what, limits.tensors_max));
  };
  if (query.inputs.size() > limits.tensors_max) return too_many(query.inputs.size(), "inputs");
  if (query.outputs.size() > limits.tensors_max) return too_many(query.outputs.size(), "outputs");
  for (const TensorView& input : query.inputs) {
    if (input.shape.size() > limits.rank_max) {
      return Status::invalid_argument(fmt::format("input '{}' has {} dimensions; {} are allowed (--tensor-rank-max)",
                                                  input.name, input.shape.size(), limits.rank_max));
    }
    if (input.bytes.size() > limits.tensor_bytes_max) {
      return Status::invalid_argument(fmt::format("input '{}' has {}; {} are allowed (--tensor-max)", input.name,
                                                  format_bytes(input.bytes.size()),
                                                  format_bytes(limits.tensor_bytes_max)));
    }
  }
  return Status();
}

}  // namespace foliot
