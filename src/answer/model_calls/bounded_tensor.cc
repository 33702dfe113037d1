#include "answer/model_calls/bounded_tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "foundation/base/check.h"
#include "foundation/core/bounded_row.h"

namespace foliot {
namespace {

using Bytes = std::span<const std::byte>;

Status wrong(const TensorSpec& tensor, std::string message) {
  return Status::invalid_argument(fmt::format("input '{}': {}", tensor.name, message));
}

// How many bytes each row takes of the client's.
Result<std::vector<uint64_t>> row_sizes(const TensorSpec& tensor, uint64_t count, uint32_t rows, Bytes elements) {
  if (tensor.type != DataType::kBytes) {
    const uint64_t row = count * size_of(tensor.type);
    if (elements.size() == row * rows) return std::vector<uint64_t>(rows, row);
    return wrong(tensor, fmt::format("expected {} bytes for {} rows of {} {}, got {}", row * rows, rows, count,
                                     to_string(tensor.type), elements.size()));
  }
  std::vector<uint64_t> sizes;
  uint64_t end = 0;
  for (uint32_t row = 0; row < rows; ++row) {
    const std::optional<uint64_t> bytes = strings_bytes(elements.subspan(end), count);
    if (!bytes) {
      return wrong(tensor,
                   fmt::format("expected {} strings, each its length in 4 bytes and then its bytes; the {} bytes "
                               "that came end before row {} does",
                               count * rows, elements.size(), row));
    }
    const uint64_t text = *bytes - count * kStringLengthBytes;
    if (text > tensor.bound->string_bytes) {
      return wrong(tensor, fmt::format("row {} has strings of {} bytes; its model takes up to {} in a row", row, text,
                                       tensor.bound->string_bytes));
    }
    sizes.push_back(*bytes);
    end += *bytes;
  }
  if (end == elements.size()) return sizes;
  return wrong(tensor, fmt::format("expected {} strings, got {} bytes more than these take", count * rows,
                                   elements.size() - end));
}

// Calls visit(position among the elements of the largest extents, or nothing for padding).
// Elements of `own` extents lie in the corner of `all`.
template <typename Visit>
void for_each_place(const Shape& own, const Shape& all, const Visit& visit) {
  const uint64_t count = element_count(all);
  for (uint64_t place = 0; place < count; ++place) {
    bool inside = true;
    uint64_t rest = place;
    for (size_t axis = all.size(); axis-- > 0;) {
      const auto extent = static_cast<uint64_t>(all[axis]);
      inside = inside && rest % extent < static_cast<uint64_t>(own[axis]);
      rest /= extent;
    }
    visit(inside);
  }
}

// Appends a row's elements, of `own` extents, as those of `all`.
void append_padded(const TensorSpec& tensor, const Shape& own, const Shape& all, Bytes elements, std::string& bytes) {
  const bool strings = tensor.type == DataType::kBytes;
  const uint64_t padding = strings ? kStringLengthBytes : size_of(tensor.type);
  for_each_place(own, all, [&](bool inside) {
    if (!inside) return void(bytes.append(padding, '\0'));
    const uint64_t taken = strings ? *strings_bytes(elements, 1) : padding;
    bytes.append(reinterpret_cast<const char*>(elements.data()), taken);
    elements = elements.subspan(taken);
  });
}

}  // namespace

Result<std::string> to_rows(const TensorSpec& tensor, const Shape& extents, uint32_t rows, Bytes elements) {
  FOLIOT_ASSIGN_OR_RETURN(const auto sizes, row_sizes(tensor, element_count(extents), rows, elements));
  const uint64_t row_bytes = bounded_row_bytes(tensor);
  std::string memory(row_bytes * rows, '\0');
  for (uint32_t row = 0; row < rows; ++row) {
    const auto place = std::as_writable_bytes(std::span(memory)).subspan(row * row_bytes, row_bytes);
    FOLIOT_CHECK(write_row(tensor, extents, elements.first(sizes[row]), place));
    elements = elements.subspan(sizes[row]);
  }
  return memory;
}

ClientTensor from_rows(const TensorSpec& tensor, uint32_t rows, Bytes memory) {
  const uint64_t row_bytes = bounded_row_bytes(tensor);
  FOLIOT_CHECK(memory.size() == row_bytes * rows);
  const std::string nothing(row_bytes, '\0');
  std::vector<Bytes> places;
  std::vector<Shape> shapes;
  ClientTensor result{.extents = extents_of(tensor, std::as_bytes(std::span(nothing))), .bytes = {}};
  for (uint32_t row = 0; row < rows; ++row) {
    const Bytes place = memory.subspan(row * row_bytes, row_bytes);
    places.push_back(used_bytes(tensor, place) ? place : std::as_bytes(std::span(nothing)));
    shapes.push_back(extents_of(tensor, places.back()));
    std::ranges::transform(result.extents, shapes.back(), result.extents.begin(),
                           [](int64_t a, int64_t b) { return std::max(a, b); });
  }
  for (uint32_t row = 0; row < rows; ++row) {
    const Bytes elements = elements_of(tensor, places[row]);
    if (shapes[row] == result.extents) {
      result.bytes.append(reinterpret_cast<const char*>(elements.data()), elements.size());
    } else {
      result.padded = true;
      append_padded(tensor, shapes[row], result.extents, elements, result.bytes);
    }
  }
  return result;
}

}  // namespace foliot
