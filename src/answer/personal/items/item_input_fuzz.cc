// libFuzzer target: inputs of items. What decodes gives the same bytes when its rows are encoded again.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "answer/personal/items/item_input.h"
#include "foundation/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto rows = foliot::decode_input(input);
  if (!rows) return 0;
  foliot::ItemTensors tensors;
  for (const foliot::RowView& row : *rows) {
    foliot::Shape shape = {1};
    shape.insert(shape.end(), row.shape.begin(), row.shape.end());
    tensors.push_back({std::string(row.name), std::string(row.datatype), std::move(shape), std::string(row.bytes)});
  }
  // Errors: names in another order or twice, data that is not of the shape.
  const auto again = foliot::encode_inputs(tensors, 1);
  if (again.ok()) FOLIOT_CHECK(foliot::decode_input(again->at(0)).has_value());
  return 0;
}
