// libFuzzer target: anything that the process of a container can send as its description.
// One that is accepted has the bounds that the server relies on.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "engine/container/container_description.h"
#include "foundation/base/check.h"
#include "foundation/core/bounded_row.h"
#include "foundation/core/model_info.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto parsed = foliot::parse_description({reinterpret_cast<const char*>(data), size});
  if (!parsed.ok()) return 0;
  for (const auto* tensors : {&parsed->inputs, &parsed->outputs}) {
    FOLIOT_CHECK(!tensors->empty() && tensors->size() <= foliot::kContainerTensorsMax);
    uint64_t bytes = 0;
    for (const foliot::TensorSpec& tensor : *tensors) {
      FOLIOT_CHECK(!tensor.name.empty() && tensor.dimension_names.size() == tensor.shape.size());
      FOLIOT_CHECK(foliot::check_bound(tensor).ok());
      bytes += foliot::row_bytes(tensor, foliot::Bucket());
    }
    FOLIOT_CHECK(bytes <= foliot::kContainerRowBytesMax);
  }
  FOLIOT_CHECK(parsed->batch_size_max >= 1 && parsed->batch_size_max <= foliot::kBatchSizeMax);
  FOLIOT_CHECK(parsed->input_bytes(parsed->batch_size_max) <= foliot::kContainerBatchBytesMax);
  FOLIOT_CHECK(parsed->output_bytes(parsed->batch_size_max) <= foliot::kContainerBatchBytesMax);
  return 0;
}
