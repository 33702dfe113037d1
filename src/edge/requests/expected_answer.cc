#include "edge/requests/expected_answer.h"

#include <algorithm>

namespace foliot {

uint64_t expected_answer_bytes(const ServedNames& names, std::string_view model, std::string_view version,
                               int64_t first_extent, const std::function<bool(std::string_view)>& asked_for) {
  constexpr int64_t kRowsMax = 1 << 20;
  const auto found = names.find(model, version);
  if (!found.ok()) return 1;
  uint64_t row_bytes = 0;
  for (const TensorSpec& output : (*found)->outputs) {
    if (!asked_for(output.name)) continue;
    uint64_t bytes = output.type == DataType::kBytes ? 1 : size_of(output.type);
    for (const int64_t extent : output.shape) bytes *= static_cast<uint64_t>(std::max<int64_t>(extent, 1));
    row_bytes += bytes;
  }
  return std::max<uint64_t>(row_bytes, 1) *
         static_cast<uint64_t>((*found)->batching ? std::clamp<int64_t>(first_extent, 1, kRowsMax) : 1);
}

}  // namespace foliot
