#include "engine/container/container_description.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

#include "engine/device/plan.h"
#include "foundation/base/escaped_text.h"
#include "foundation/core/bounded_row.h"
#include "foundation/core/model_info.h"
#include "foundation/core/serialized_string.h"

namespace foliot {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

// Deeper than a description is.
constexpr size_t kDepthMax = 8;

Status wrong(std::string message) {
  return Status::invalid_argument("the description of the container: " + std::move(message));
}

template <typename T>
Result<T> read(element value, std::string_view what, std::string_view kind) {
  T typed;
  if (value.get(typed) != simdjson::SUCCESS) return wrong(fmt::format("{} must be {}", what, kind));
  return typed;
}

Status unknown_key(std::string_view key, std::string_view where, std::string_view known) {
  return wrong(fmt::format("unknown key {} in {}; known are {}", in_quotes(key.substr(0, kContainerNameBytesMax)),
                           where, known));
}

uint64_t bytes_of(const std::vector<TensorSpec>& tensors, uint32_t rows) {
  uint64_t bytes = 0;
  for (const TensorSpec& tensor : tensors) bytes += aligned_tensor_bytes(row_bytes(tensor, Bucket()) * rows);
  return bytes;
}

// A value that stands twice is an error, as is none at all.
template <typename T>
Status set_once(std::optional<T>& place, Result<T> value, std::string_view what) {
  if (place) return wrong(fmt::format("{} stands there twice", what));
  if (!value.ok()) return value.status();
  place = std::move(value).value();
  return {};
}

Result<DataType> read_type(element value, std::string_view what) {
  FOLIOT_ASSIGN_OR_RETURN(const std::string_view name, read<std::string_view>(value, what, "a string"));
  const std::optional<DataType> type = parse_data_type(name);
  if (type && *type != DataType::kBfloat16) return *type;
  return wrong(fmt::format("{} {} is not one of BOOL, UINT8 to UINT64, INT8 to INT64, FP16, FP32, FP64, BYTES", what,
                           in_quotes(name.substr(0, kContainerNameBytesMax))));
}

Result<std::string> read_name(element value, std::string_view what) {
  FOLIOT_ASSIGN_OR_RETURN(const std::string_view name, read<std::string_view>(value, what, "a string"));
  if (name.empty() || name.size() > kContainerNameBytesMax) {
    return wrong(fmt::format("{} has {} bytes; 1 to {} are allowed", what, name.size(), kContainerNameBytesMax));
  }
  if (escaped(name) != name) return wrong(fmt::format("{} {} is not printable text", what, in_quotes(name)));
  return std::string(name);
}

// `least`: 0, or -1 where dimensions may vary.
Result<Shape> read_shape(element value, std::string_view what, int64_t least) {
  FOLIOT_ASSIGN_OR_RETURN(const array extents, read<array>(value, what, "an array"));
  Shape shape;
  for (const element extent : extents) {
    FOLIOT_ASSIGN_OR_RETURN(const int64_t known,
                            read<int64_t>(extent, fmt::format("each of {}", what), "a whole number"));
    if (known < least || known > static_cast<int64_t>(kContainerRowBytesMax)) {
      return wrong(fmt::format("{} has {}; dimensions are {} to {}", what, known, least, kContainerRowBytesMax));
    }
    if (shape.size() == kContainerRankMax) {
      return wrong(fmt::format("{} has more than {} dimensions", what, kContainerRankMax));
    }
    shape.push_back(known);
  }
  return shape;
}

Result<uint64_t> read_string_bytes(element value, std::string_view what) {
  FOLIOT_ASSIGN_OR_RETURN(const int64_t bytes, read<int64_t>(value, what, "a whole number"));
  if (bytes >= 0 && bytes <= static_cast<int64_t>(kContainerRowBytesMax)) return static_cast<uint64_t>(bytes);
  return wrong(fmt::format("{} is {}; 0 to {} are allowed", what, bytes, kContainerRowBytesMax));
}

// Of one row, as far as the limit. A zero anywhere makes it zero, whatever the others.
uint64_t limited_row_bytes(const TensorSpec& tensor) {
  if (tensor.bound) return bounded_row_bytes(tensor);
  if (std::ranges::find(tensor.shape, 0) != tensor.shape.end()) return 0;
  uint64_t bytes = size_of(tensor.type);
  for (const int64_t extent : tensor.shape) {
    if (bytes > kContainerRowBytesMax / static_cast<uint64_t>(extent)) return kContainerRowBytesMax + 1;
    bytes *= static_cast<uint64_t>(extent);
  }
  return bytes;
}

// Strings and dimensions that vary have a bound, and nothing else does.
Status add_bound(TensorSpec& tensor, std::optional<Shape> shape_max, std::optional<uint64_t> string_bytes) {
  const bool varies = std::ranges::count(tensor.shape, -1) > 0;
  const bool strings = tensor.type == DataType::kBytes;
  const auto needs = [&](std::string_view key, bool needed, bool given) {
    if (needed == given) return Status();
    return wrong(fmt::format("{} {} {} {} '{}'", in_quotes(tensor.name), to_string(tensor.type),
                             to_string(tensor.shape), needed ? "has no" : "cannot have a", key));
  };
  FOLIOT_RETURN_IF_ERROR(needs("shape_max", varies, shape_max.has_value()));
  FOLIOT_RETURN_IF_ERROR(needs("string_bytes_max", strings, string_bytes.has_value()));
  if (!varies && !strings) return Status();
  tensor.bound = RowBound{shape_max ? *std::move(shape_max) : tensor.shape, string_bytes.value_or(0)};
  const Status status = check_bound(tensor);
  return status.ok() ? status : wrong(status.message());
}

Result<std::vector<std::string>> read_columns(element value, std::string_view what) {
  FOLIOT_ASSIGN_OR_RETURN(const array names, read<array>(value, what, "an array"));
  std::vector<std::string> columns;
  for (const element name : names) {
    FOLIOT_ASSIGN_OR_RETURN(columns.emplace_back(), read_name(name, fmt::format("each of {}", what)));
  }
  return columns;
}

// A row of these elements, as the memory has it.
Result<std::string> read_example(const TensorSpec& tensor, element value) {
  const std::string what = fmt::format("'example' of {}", in_quotes(tensor.name));
  FOLIOT_ASSIGN_OR_RETURN(const array values, read<array>(value, what, "an array"));
  const bool strings = tensor.type == DataType::kBytes;
  const uint64_t count = element_count(tensor.bound ? tensor.bound->shape : tensor.shape);
  if (values.size() != count) return wrong(fmt::format("{} has {} elements; a row has {}", what, values.size(), count));
  if (!strings && (tensor.bound || (tensor.type != DataType::kFloat32 && tensor.type != DataType::kFloat64))) {
    return wrong(what + " is allowed of strings, and of FP32 and FP64 whose rows have one shape");
  }
  std::string row(row_bytes(tensor, Bucket()), '\0');
  const std::span<std::byte> memory = std::as_writable_bytes(std::span(row));
  std::string texts;
  size_t at = 0;
  for (const element each : values) {
    if (strings) {
      FOLIOT_ASSIGN_OR_RETURN(const std::string_view text, read<std::string_view>(each, what, "of strings"));
      append_string(texts, text);
      continue;
    }
    FOLIOT_ASSIGN_OR_RETURN(const double number, read<double>(each, what, "of numbers"));
    fill(memory.subspan(at, size_of(tensor.type)), tensor.type, number);
    at += size_of(tensor.type);
  }
  if (!strings) return row;
  const uint64_t bytes = texts.size() - count * kStringLengthBytes;
  if (bytes <= tensor.bound->string_bytes &&
      write_row(tensor, tensor.bound->shape, std::as_bytes(std::span(texts)), memory)) {
    return row;
  }
  return wrong(fmt::format("{} has {} bytes, and a row has {} at most", what, bytes, tensor.bound->string_bytes));
}

// `example`: a row of an input; empty where there is none.
Result<TensorSpec> read_tensor(element value, std::string_view list, std::string& example) {
  FOLIOT_ASSIGN_OR_RETURN(const object members, read<object>(value, fmt::format("each of '{}'", list), "an object"));
  std::optional<std::string> name;
  std::optional<DataType> type;
  std::optional<Shape> shape, shape_max;
  std::optional<uint64_t> string_bytes;
  std::optional<std::vector<std::string>> columns;
  std::optional<element> shown;
  const bool is_input = list == "inputs";
  for (const auto& [key, member] : members) {
    const auto what = [&, k = key] { return fmt::format("'{}' of one of '{}'", k, list); };
    if (key == "name") {
      FOLIOT_RETURN_IF_ERROR(set_once(name, read_name(member, what()), what()));
    } else if (key == "datatype") {
      FOLIOT_RETURN_IF_ERROR(set_once(type, read_type(member, what()), what()));
    } else if (key == "shape") {
      FOLIOT_RETURN_IF_ERROR(set_once(shape, read_shape(member, what(), -1), what()));
    } else if (key == "shape_max") {
      FOLIOT_RETURN_IF_ERROR(set_once(shape_max, read_shape(member, what(), 0), what()));
    } else if (key == "string_bytes_max") {
      FOLIOT_RETURN_IF_ERROR(set_once(string_bytes, read_string_bytes(member, what()), what()));
    } else if (key == "columns" && is_input) {
      FOLIOT_RETURN_IF_ERROR(set_once(columns, read_columns(member, what()), what()));
    } else if (key == "example" && is_input) {
      FOLIOT_RETURN_IF_ERROR(set_once(shown, Result<element>(member), what()));
    } else {
      return unknown_key(key, fmt::format("one of '{}'", list),
                         is_input ? "'name', 'datatype', 'shape', 'shape_max', 'string_bytes_max', 'columns', 'example'"
                                  : "'name', 'datatype', 'shape', 'shape_max', 'string_bytes_max'");
    }
  }
  if (!name || !type || !shape) {
    return wrong(fmt::format("one of '{}' has no '{}'", list, !name ? "name" : !type ? "datatype" : "shape"));
  }
  TensorSpec tensor{*std::move(name), *type, *std::move(shape), {}};
  tensor.dimension_names.resize(tensor.shape.size());
  tensor.labels = std::move(columns).value_or(std::vector<std::string>());
  if (!tensor.labels.empty() && tensor.shape != Shape{static_cast<int64_t>(tensor.labels.size())}) {
    return wrong(fmt::format("{} has {} 'columns' and the shape {}", in_quotes(tensor.name), tensor.labels.size(),
                             to_string(tensor.shape)));
  }
  FOLIOT_RETURN_IF_ERROR(add_bound(tensor, std::move(shape_max), string_bytes));
  if (shown && limited_row_bytes(tensor) <= kContainerRowBytesMax) {
    FOLIOT_ASSIGN_OR_RETURN(example, read_example(tensor, *shown));
  }
  return tensor;
}

struct Tensors {
  std::vector<TensorSpec> specs;
  std::vector<std::string> examples;
};

Result<Tensors> read_tensors(element value, std::string_view list) {
  FOLIOT_ASSIGN_OR_RETURN(const array elements, read<array>(value, fmt::format("'{}'", list), "an array"));
  std::vector<TensorSpec> tensors;
  std::vector<std::string> examples;
  uint64_t bytes = 0;
  for (const element member : elements) {
    if (tensors.size() == kContainerTensorsMax) {
      return wrong(fmt::format("'{}' has more than {} tensors", list, kContainerTensorsMax));
    }
    FOLIOT_ASSIGN_OR_RETURN(TensorSpec tensor, read_tensor(member, list, examples.emplace_back()));
    if (std::ranges::find(tensors, tensor.name, &TensorSpec::name) != tensors.end()) {
      return wrong(fmt::format("'{}' has {} twice", list, in_quotes(tensor.name)));
    }
    bytes += limited_row_bytes(tensor);
    if (bytes > kContainerRowBytesMax) {
      return wrong(fmt::format("a row of '{}' has more than {} bytes with {} {}", list, kContainerRowBytesMax,
                               in_quotes(tensor.name), to_string(tensor.shape)));
    }
    tensors.push_back(std::move(tensor));
  }
  if (tensors.empty())
    return wrong(fmt::format("'{}' is empty; 1 to {} tensors are allowed", list, kContainerTensorsMax));
  return Tensors{std::move(tensors), std::move(examples)};
}

Result<uint32_t> read_batch_size_max(element value) {
  FOLIOT_ASSIGN_OR_RETURN(const int64_t size, read<int64_t>(value, "'batch_size_max'", "a whole number"));
  if (size >= 1 && size <= kBatchSizeMax) return static_cast<uint32_t>(size);
  return wrong(fmt::format("'batch_size_max' is {}; 1 to {} are allowed", size, kBatchSizeMax));
}

Result<uint32_t> read_protocol(element value) {
  FOLIOT_ASSIGN_OR_RETURN(const int64_t number, read<int64_t>(value, "'protocol'", "a whole number"));
  if (number == kContainerProtocol) return kContainerProtocol;
  return wrong(fmt::format("'protocol' is {}; this server has {}: install the Python package `foliot` of its version",
                           number, kContainerProtocol));
}

}  // namespace

uint64_t aligned_tensor_bytes(uint64_t bytes) {
  return (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
}

uint64_t ContainerDescription::input_bytes(uint32_t rows) const { return bytes_of(inputs, rows); }
uint64_t ContainerDescription::output_bytes(uint32_t rows) const { return bytes_of(outputs, rows); }

void write_examples(const ContainerDescription& description, uint32_t rows, std::span<std::byte> memory) {
  std::ranges::fill(memory.first(description.input_bytes(rows)), std::byte{0});
  for (size_t i = 0; i < description.inputs.size(); ++i) {
    const TensorSpec& input = description.inputs[i];
    const std::string_view example = description.examples[i];
    const uint64_t bytes = row_bytes(input, Bucket());
    for (uint32_t row = 0; row < rows && (input.bound || !example.empty()); ++row) {
      const std::span<std::byte> place = memory.subspan(row * bytes, bytes);
      if (example.empty()) {
        write_zeros(input, place);
      } else {
        std::ranges::copy(std::as_bytes(std::span(example)), place.begin());
      }
    }
    memory = memory.subspan(aligned_tensor_bytes(bytes * rows));
  }
}

Result<ContainerDescription> parse_description(std::string_view json, uint32_t batch_size_default) {
  if (json.size() > kContainerDescriptionBytesMax) {
    return wrong(fmt::format("{} bytes; {} are allowed", json.size(), kContainerDescriptionBytesMax));
  }
  simdjson::dom::parser parser;
  element root;
  auto error = parser.allocate(kContainerDescriptionBytesMax, kDepthMax);
  if (error == simdjson::SUCCESS) error = parser.parse(json.data(), json.size()).get(root);
  if (error != simdjson::SUCCESS) return wrong(fmt::format("not valid JSON: {}", simdjson::error_message(error)));
  FOLIOT_ASSIGN_OR_RETURN(const object document, read<object>(root, "it", "an object"));
  std::optional<uint32_t> protocol, batch_size_max;
  std::optional<Tensors> inputs, outputs;
  for (const auto& [key, member] : document) {
    if (key == "protocol") {
      FOLIOT_RETURN_IF_ERROR(set_once(protocol, read_protocol(member), "'protocol'"));
    } else if (key == "inputs") {
      FOLIOT_RETURN_IF_ERROR(set_once(inputs, read_tensors(member, "inputs"), "'inputs'"));
    } else if (key == "outputs") {
      FOLIOT_RETURN_IF_ERROR(set_once(outputs, read_tensors(member, "outputs"), "'outputs'"));
    } else if (key == "batch_size_max") {
      FOLIOT_RETURN_IF_ERROR(set_once(batch_size_max, read_batch_size_max(member), "'batch_size_max'"));
    } else {
      return unknown_key(key, "it", "'protocol', 'inputs', 'outputs', 'batch_size_max'");
    }
  }
  if (!protocol || !inputs || !outputs) {
    return wrong(fmt::format("it has no '{}'", !protocol ? "protocol" : !inputs ? "inputs" : "outputs"));
  }
  ContainerDescription description{std::move(inputs->specs), std::move(outputs->specs), std::move(inputs->examples),
                                   batch_size_max.value_or(batch_size_default)};
  uint32_t& rows = description.batch_size_max;
  while (std::max(description.input_bytes(rows), description.output_bytes(rows)) > kContainerBatchBytesMax) --rows;
  return description;
}

}  // namespace foliot
