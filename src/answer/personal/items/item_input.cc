#include "answer/personal/items/item_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "foundation/core/serialized_string.h"

namespace foliot {
namespace {

constexpr size_t kExtentsMax = 16;

Status wrong_tensor(const ItemTensor& tensor, std::string_view what) {
  return Status::invalid_argument(fmt::format("input '{}': {}", tensor.name, what));
}

// Of a row; nullopt: too many for a number.
std::optional<uint64_t> elements_of_row(const ItemTensor& tensor) {
  uint64_t elements = 1;
  for (size_t i = 1; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] < 0) return std::nullopt;
    if (__builtin_mul_overflow(elements, static_cast<uint64_t>(tensor.shape[i]), &elements)) return std::nullopt;
  }
  return elements;
}

// Takes as many strings, each with its length, from the front of `rest`.
std::optional<std::string_view> take_strings(std::string_view& rest, uint64_t count) {
  size_t size = 0;
  for (uint64_t i = 0; i < count; ++i) {
    uint32_t length = 0;
    if (rest.size() - size < sizeof length) return std::nullopt;
    std::memcpy(&length, rest.data() + size, sizeof length);
    size += sizeof length;
    if (rest.size() - size < length) return std::nullopt;
    size += length;
  }
  const std::string_view taken = rest.substr(0, size);
  rest.remove_prefix(size);
  return taken;
}

std::optional<std::string_view> take_numbers(std::string_view& rest, uint64_t count, DataType type) {
  uint64_t size = 0;
  if (__builtin_mul_overflow(count, size_of(type), &size) || size > rest.size()) return std::nullopt;
  const std::string_view taken = rest.substr(0, size);
  rest.remove_prefix(size);
  return taken;
}

Status append_rows(const ItemTensor& tensor, std::vector<std::string>& inputs) {
  const std::optional<DataType> type = parse_data_type(tensor.datatype);
  if (!type) return wrong_tensor(tensor, fmt::format("unknown datatype '{}'", tensor.datatype));
  if (tensor.shape.empty() || tensor.shape.size() > kExtentsMax ||
      static_cast<uint64_t>(tensor.shape[0]) != inputs.size()) {
    return wrong_tensor(tensor, fmt::format("its shape {} must begin with {}: a row for each item of the call",
                                            to_string(tensor.shape), inputs.size()));
  }
  const std::optional<uint64_t> elements = elements_of_row(tensor);
  if (!elements) return wrong_tensor(tensor, fmt::format("its shape {} cannot be", to_string(tensor.shape)));
  std::string extents;
  for (size_t i = 1; i < tensor.shape.size(); ++i) {
    extents.append(reinterpret_cast<const char*>(&tensor.shape[i]), sizeof tensor.shape[i]);
  }
  std::string_view rest = tensor.bytes;
  for (std::string& input : inputs) {
    const auto row = *type == DataType::kBytes ? take_strings(rest, *elements) : take_numbers(rest, *elements, *type);
    if (!row) {
      return wrong_tensor(
          tensor, fmt::format("{} bytes are not {} {}", tensor.bytes.size(), to_string(tensor.shape), tensor.datatype));
    }
    for (const std::string_view part :
         {std::string_view(tensor.name), std::string_view(tensor.datatype), std::string_view(extents), *row}) {
      append_string(input, part);
    }
    if (input.size() > kItemInputBytesMax) {
      return wrong_tensor(tensor, fmt::format("the input of an item has {} bytes and more: at most {} are kept",
                                              input.size(), kItemInputBytesMax));
    }
  }
  if (rest.empty()) return Status();
  return wrong_tensor(
      tensor, fmt::format("{} bytes are not {} {}", tensor.bytes.size(), to_string(tensor.shape), tensor.datatype));
}

std::optional<std::string_view> take_part(std::string_view& rest) {
  const auto part = take_strings(rest, 1);
  return part ? std::optional(part->substr(sizeof(uint32_t))) : std::nullopt;
}

}  // namespace

Result<std::vector<std::string>> encode_inputs(const ItemTensors& tensors, size_t rows) {
  if (tensors.empty() || tensors.size() > kItemTensorsMax) {
    return Status::invalid_argument(
        fmt::format("{} inputs of items: must be 1 to {}", tensors.size(), kItemTensorsMax));
  }
  std::vector<const ItemTensor*> by_name;
  for (const ItemTensor& tensor : tensors) by_name.push_back(&tensor);
  std::ranges::sort(by_name, {}, [](const ItemTensor* tensor) { return std::string_view(tensor->name); });
  const auto count = static_cast<uint32_t>(by_name.size());
  std::vector<std::string> inputs(rows, std::string(reinterpret_cast<const char*>(&count), sizeof count));
  for (size_t i = 0; i < by_name.size(); ++i) {
    if (i > 0 && by_name[i - 1]->name == by_name[i]->name) return wrong_tensor(*by_name[i], "is there twice");
    FOLIOT_RETURN_IF_ERROR(append_rows(*by_name[i], inputs));
  }
  return inputs;
}

std::optional<std::vector<RowView>> decode_input(std::string_view input) {
  uint32_t count = 0;
  if (input.size() < sizeof count) return std::nullopt;
  std::memcpy(&count, input.data(), sizeof count);
  input.remove_prefix(sizeof count);
  if (count == 0 || count > kItemTensorsMax) return std::nullopt;
  std::vector<RowView> rows(count);
  for (RowView& row : rows) {
    const auto name = take_part(input);
    const auto datatype = take_part(input);
    const auto extents = take_part(input);
    const auto bytes = take_part(input);
    if (!name || !datatype || !extents || !bytes) return std::nullopt;
    if (extents->size() % sizeof(int64_t) != 0 || extents->size() > kExtentsMax * sizeof(int64_t)) return std::nullopt;
    row = {.name = *name, .datatype = *datatype, .shape = Shape(extents->size() / sizeof(int64_t)), .bytes = *bytes};
    if (!row.shape.empty()) std::memcpy(row.shape.data(), extents->data(), extents->size());  // data() may be null
  }
  return input.empty() ? std::optional(std::move(rows)) : std::nullopt;
}

}  // namespace foliot
