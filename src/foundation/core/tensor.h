// TensorSpec: the element type, shape and name of a tensor. No data is held here.
#ifndef FOLIOT_FOUNDATION_CORE_TENSOR_H_
#define FOLIOT_FOUNDATION_CORE_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/status.h"

namespace foliot {

enum class DataType : uint8_t {
  kBool,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat16,
  kBfloat16,
  kFloat32,
  kFloat64,
  kBytes,  // strings of any bytes, of a length of their own each; only with a RowBound
};
inline constexpr DataType kDataTypeLast = DataType::kBytes;

// REQUIRES: not kBytes.
uint64_t size_of(DataType type);
// The Open Inference Protocol's names: "BOOL", "UINT8", ..., "FP16", "BF16", "FP32", "FP64", "BYTES".
std::string_view to_string(DataType type);
std::optional<DataType> parse_data_type(std::string_view name);

// Extents, outermost first; all are known (>= 0). Empty: a scalar.
using Shape = std::vector<int64_t>;

uint64_t element_count(const Shape& shape);
// REQUIRES: not kBytes.
uint64_t byte_size(DataType type, const Shape& shape);
// "[1,3,224,224]".
std::string to_string(const Shape& shape);

// Sets all elements to this number, rounded toward zero where the type is whole. REQUIRES: the type
// can hold it; of FP16 and BF16, it is 0. Not kBytes.
void fill(std::span<std::byte> elements, DataType type, double value);

// The most that a row of a tensor has whose rows vary in size (foundation/core/bounded_row.h).
struct RowBound {
  Shape shape;                // where the TensorSpec has -1, the largest extent; elsewhere the same
  uint64_t string_bytes = 0;  // kBytes: of all strings of a row together; other types: 0

  bool operator==(const RowBound&) const = default;
};

// An input or output of a model as the outside sees it. Where the model batches,
// `shape` leaves the batch dimension out: it describes one row.
struct TensorSpec {
  std::string name;
  DataType type = DataType::kFloat32;
  // A dimension that depends on the bucket is -1 here, and `dimension_names`
  // holds its name at that place ("sequence"); other places are "". With a bound
  // -1 depends on nothing but the row, and all names are "".
  Shape shape;
  std::vector<std::string> dimension_names;
  // Of an output of a classifier: the names of the classes that its values count, or that
  // its last dimension has one value for each of. Empty: it has none.
  std::vector<std::string> labels{};
  // Only of models whose rows vary in size: strings, or dimensions without buckets.
  std::optional<RowBound> bound{};
};

inline constexpr size_t kLabelsMax = 10'000;
inline constexpr size_t kLabelBytesMax = 256;
// Errors: kInvalidArgument for more or longer ones.
Status check_labels(const std::vector<std::string>& labels);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_TENSOR_H_
