// The input of an item: one row of each input of a feature model, as bytes that are kept in the log. Equal inputs are
// equal bytes: tensors are in the order of their names.
//
//   tensors (u32), then of each: name, datatype, extents of a row, data; each with its length (u32) before it
//
// Threading: any.
#ifndef FOLIOT_ANSWER_PERSONAL_ITEMS_ITEM_INPUT_H_
#define FOLIOT_ANSWER_PERSONAL_ITEMS_ITEM_INPUT_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "answer/inference/personal_service.h"
#include "foundation/base/status.h"
#include "foundation/core/tensor.h"

namespace foliot {

// So that an observation of the item fits into a record of the log.
inline constexpr size_t kItemInputBytesMax = 1'000'000;
inline constexpr size_t kItemTensorsMax = 64;

// The rows of these tensors, whose first extent is `rows`. Errors: kInvalidArgument naming the tensor for another
// number of rows, data that is not what datatype and shape say, a name that comes twice; for no tensor or more than
// kItemTensorsMax, and for a row above kItemInputBytesMax.
Result<std::vector<std::string>> encode_inputs(const ItemTensors& tensors, size_t rows);

struct RowView {
  std::string_view name;
  std::string_view datatype;
  Shape shape;  // of the row
  std::string_view bytes;

  // Whether rows of both can be put into one tensor.
  bool is_like(const RowView& other) const {
    return name == other.name && datatype == other.datatype && shape == other.shape;
  }
};
// Views of `input`. nullopt: it is none.
std::optional<std::vector<RowView>> decode_input(std::string_view input);

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_ITEMS_ITEM_INPUT_H_
