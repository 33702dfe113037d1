#include "edge/jobs/class_accuracy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

namespace foliot {
namespace {

constexpr uint64_t kBlockBytes = uint64_t{4} << 20;

// Of rows that lie one behind the other.
template <typename T>
void append_classes(std::span<const std::byte> rows, size_t elements, std::vector<int64_t>& to) {
  std::vector<T> row(elements);
  for (size_t at = 0; at < rows.size(); at += elements * sizeof(T)) {
    std::memcpy(row.data(), rows.data() + at, elements * sizeof(T));
    to.push_back(elements == 1 && std::is_integral_v<T> ? static_cast<int64_t>(row[0])
                                                        : std::ranges::max_element(row) - row.begin());
  }
}

using AppendClasses = void (*)(std::span<const std::byte>, size_t, std::vector<int64_t>&);

// nullptr: no class can be read of it.
AppendClasses reader_of(DataType type) {
  switch (type) {
    case DataType::kFloat32: return append_classes<float>;
    case DataType::kFloat64: return append_classes<double>;
    case DataType::kInt64: return append_classes<int64_t>;
    case DataType::kInt32: return append_classes<int32_t>;
    case DataType::kInt16: return append_classes<int16_t>;
    case DataType::kInt8: return append_classes<int8_t>;
    case DataType::kUint8: return append_classes<uint8_t>;
    default: return nullptr;
  }
}

}  // namespace

Result<double> class_accuracy(const InputFile& answers, const InputFile& labels) {
  if (labels.type() != DataType::kInt64 || labels.row_bytes() != sizeof(int64_t)) {
    return Status::invalid_argument(fmt::format("labels are {} of shape {} for each row; they must be one INT64",
                                                to_string(labels.type()), to_string(labels.row_shape())));
  }
  if (labels.rows() != answers.rows()) {
    return Status::invalid_argument(
        fmt::format("there are {} labels for {} rows of answers", labels.rows(), answers.rows()));
  }
  const AppendClasses append = reader_of(answers.type());
  const uint64_t elements = element_count(answers.row_shape());
  const bool is_number =
      elements == 1 && (answers.type() == DataType::kFloat32 || answers.type() == DataType::kFloat64);
  if (append == nullptr || elements == 0 || is_number) {
    return Status::invalid_argument(
        fmt::format("an output of {} and shape {} for each row names no class: name another with 'output'",
                    to_string(answers.type()), to_string(answers.row_shape())));
  }
  const uint64_t block = std::max<uint64_t>(kBlockBytes / answers.row_bytes(), 1);
  std::vector<std::byte> bytes;
  uint64_t right = 0;
  for (uint64_t begin = 0; begin < answers.rows(); begin += block) {
    const uint64_t end = std::min(begin + block, answers.rows());
    std::vector<int64_t> classes, wanted;
    FOLIOT_RETURN_IF_ERROR(answers.read(begin, end, bytes));
    append(bytes, elements, classes);
    FOLIOT_RETURN_IF_ERROR(labels.read(begin, end, bytes));
    append_classes<int64_t>(bytes, 1, wanted);
    for (size_t i = 0; i < classes.size(); ++i) right += classes[i] == wanted[i] ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(answers.rows());
}

}  // namespace foliot
