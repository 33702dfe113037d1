#include "load/client/input_generator.h"

#include <fmt/format.h>

#include <cstring>

#include "foundation/core/tensor.h"

namespace foliot {
namespace {

constexpr uint64_t kInputBytesMax = uint64_t{1} << 30;
constexpr uint64_t kTextBytesMax = 16;

template <typename T>
void put(std::string& bytes, T value) {
  char raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof(T));
  bytes.append(raw, sizeof(T));
}

// Its length, then some letters.
void put_text(std::string& bytes, Random& random) {
  const auto length = static_cast<uint32_t>(1 + random.below(kTextBytesMax));
  put(bytes, length);
  for (uint32_t i = 0; i < length; ++i) bytes += static_cast<char>('a' + random.below(26));
}

void put_random(std::string& bytes, DataType type, Random& random) {
  const auto small = random.below(100);
  switch (type) {
    case DataType::kBool: return put(bytes, static_cast<uint8_t>(small & 1));
    case DataType::kUint8:
    case DataType::kInt8: return put(bytes, static_cast<uint8_t>(small));
    case DataType::kUint16:
    case DataType::kInt16: return put(bytes, static_cast<uint16_t>(small));
    case DataType::kUint32:
    case DataType::kInt32: return put(bytes, static_cast<uint32_t>(small));
    case DataType::kUint64:
    case DataType::kInt64: return put(bytes, small);
    // Both get random mantissas under the exponent of 1: values in [1, 2).
    case DataType::kFloat16: return put(bytes, static_cast<uint16_t>(0x3c00 | random.below(1 << 10)));
    case DataType::kBfloat16: return put(bytes, static_cast<uint16_t>(0x3f80 | random.below(1 << 7)));
    case DataType::kFloat32: return put(bytes, static_cast<float>(random.normal()));
    case DataType::kFloat64: return put(bytes, random.normal());
    case DataType::kBytes: return put_text(bytes, random);
  }
}

Result<std::vector<int64_t>> choose_shape(const TensorDescription& input, uint32_t rows, const InputShapes& shapes) {
  if (const auto given = shapes.find(input.name); given != shapes.end()) return given->second;
  std::vector<int64_t> shape = input.shape;
  if (!shape.empty() && shape.front() < 0) shape.front() = rows;
  for (const int64_t extent : shape) {
    if (extent < 0) {
      return Status::invalid_argument(
          fmt::format("input '{}' has the variable shape {}: give its extents", input.name, to_string(input.shape)));
    }
  }
  return shape;
}

Result<InputTensor> random_input(const TensorDescription& input, uint32_t rows, const InputShapes& shapes,
                                 Random& random) {
  const std::optional<DataType> type = parse_data_type(input.datatype);
  if (!type) {
    return Status::unimplemented(
        fmt::format("input '{}' has elements of type {}, which cannot be made up", input.name, input.datatype));
  }
  FOLIOT_ASSIGN_OR_RETURN(std::vector<int64_t> shape, choose_shape(input, rows, shapes));
  uint64_t count = 1;
  for (const int64_t extent : shape) {
    if (extent < 0 || (extent > 0 && count > kInputBytesMax / static_cast<uint64_t>(extent))) {
      return Status::invalid_argument(fmt::format("input '{}' cannot have the shape {}", input.name, to_string(shape)));
    }
    count *= static_cast<uint64_t>(extent);
  }
  InputTensor tensor{.name = input.name, .datatype = input.datatype, .shape = std::move(shape), .bytes = {}};
  if (*type != DataType::kBytes) tensor.bytes.reserve(count * size_of(*type));
  for (uint64_t i = 0; i < count; ++i) put_random(tensor.bytes, *type, random);
  return tensor;
}

}  // namespace

Result<std::vector<InputTensor>> random_inputs(const ModelDescription& model, uint32_t rows, const InputShapes& shapes,
                                               Random& random) {
  std::vector<InputTensor> tensors;
  for (const TensorDescription& input : model.inputs) {
    Result<InputTensor> tensor = random_input(input, rows, shapes, random);
    if (!tensor.ok()) return tensor.status().with_context(fmt::format("model '{}'", model.name));
    tensors.push_back(std::move(tensor).value());
  }
  return tensors;
}

}  // namespace foliot
