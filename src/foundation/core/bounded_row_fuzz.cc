// libFuzzer target: a row in memory that an untrusted process wrote. The first bytes choose
// the tensor; whatever follows is a row within its memory, or none.
#include <cstddef>
#include <cstdint>
#include <span>

#include "foundation/base/check.h"
#include "foundation/core/bounded_row.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  foliot::TensorSpec tensor{.name = "t", .shape = {data[1] % 2 == 0 ? -1 : 3}, .dimension_names = {""}};
  if (data[0] % 2 == 0) tensor.type = foliot::DataType::kBytes;
  tensor.bound = foliot::RowBound{{data[1] % 2 == 0 ? data[1] : 3}, data[0] % 2 == 0 ? data[2] : uint64_t{0}};
  if (!foliot::check_bound(tensor).ok()) return 0;
  const std::span<const std::byte> memory = std::as_bytes(std::span(data + 3, size - 3));
  const auto used = foliot::used_bytes(tensor, memory);
  if (!used) return 0;
  FOLIOT_CHECK(*used <= memory.size());
  const foliot::Shape extents = foliot::extents_of(tensor, memory);
  FOLIOT_CHECK(extents[0] >= 0 && extents[0] <= tensor.bound->shape[0]);
  const std::span<const std::byte> elements = foliot::elements_of(tensor, memory);
  const auto count = static_cast<uint64_t>(extents[0]);
  FOLIOT_CHECK(tensor.type == foliot::DataType::kBytes ? foliot::strings_bytes(elements, count) == elements.size()
                                                       : elements.size() == 4 * count);
  return 0;
}
