#include "engine/compiler/onnx_reader.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/unknown_field_set.h>
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <onnx/onnx_pb.h>
#pragma GCC diagnostic pop

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include "engine/compiler/node_order.h"
#include "engine/compiler/operators/element_type.h"
#include "engine/compiler/small_types.h"

namespace foliot {
namespace {

// What the newest release of ONNX that is known here defines (1.23).
constexpr int64_t kOpsetMin = 7, kOpsetMax = 28, kClassicOpsetMax = 5, kIrVersionMax = 14;
constexpr int kNodesMax = 1'000'000;
constexpr uint64_t kTensorBytesMax = uint64_t{1} << 36;
constexpr uint64_t kSparseBytesMax = uint64_t{2} << 30;  // of what a few bytes of a file become

using onnx::TensorProto;

Result<DataType> convert_type(int type) {
  switch (type) {
    case TensorProto::BOOL: return DataType::kBool;
    case TensorProto::UINT8: return DataType::kUint8;
    case TensorProto::UINT16: return DataType::kUint16;
    case TensorProto::UINT32: return DataType::kUint32;
    case TensorProto::UINT64: return DataType::kUint64;
    case TensorProto::INT8: return DataType::kInt8;
    case TensorProto::INT16: return DataType::kInt16;
    case TensorProto::INT32: return DataType::kInt32;
    case TensorProto::INT64: return DataType::kInt64;
    case TensorProto::FLOAT16: return DataType::kFloat16;
    case TensorProto::BFLOAT16: return DataType::kBfloat16;
    case TensorProto::FLOAT: return DataType::kFloat32;
    case TensorProto::DOUBLE: return DataType::kFloat64;
    case TensorProto::STRING:
      return Status::unimplemented("strings (datatype BYTES) are not supported: models compute with numbers");
    default:
      return Status::unimplemented(
          fmt::format("ONNX element type {} is not supported ({})", type, onnx_type_name(type)));
  }
}

Result<uint64_t> checked_byte_size(DataType type, const Shape& shape) {
  uint64_t bytes = size_of(type);
  for (int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes)) {
      return Status::invalid_argument("its shape is impossible");
    }
  }
  if (bytes > kTensorBytesMax) return Status::invalid_argument("it is too large");
  return bytes;
}

// The file that `location` names, which must lie in `folder`: a model must not
// be able to read any other file of this machine.
Result<std::filesystem::path> external_path(const std::filesystem::path& folder, const std::string& location) {
  std::error_code error;
  const std::filesystem::path base =
      std::filesystem::canonical(folder.empty() ? std::filesystem::path(".") : folder, error);
  if (error) return Status::not_found(fmt::format("cannot open folder {}: {}", folder.string(), error.message()));
  const std::filesystem::path path = std::filesystem::canonical(base / location, error);
  if (error) {
    return Status::not_found(
        fmt::format("its external data '{}' cannot be opened in {}: {}", location, base.string(), error.message()));
  }
  const std::filesystem::path relative = path.lexically_relative(base);
  if (relative.empty() || *relative.begin() == "..") {
    return Status::invalid_argument(fmt::format("its external data '{}' is outside the model's folder", location));
  }
  // Opening a FIFO waits for a writer that may never come.
  if (!std::filesystem::is_regular_file(path, error)) {
    return Status::invalid_argument(fmt::format("its external data '{}' is no regular file", location));
  }
  return path;
}

bool parse_number(const std::string& text, uint64_t* number) {
  if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos) return false;
  *number = std::stoull(text);
  return true;
}

struct ExternalData {
  std::string location;
  uint64_t offset = 0;
  uint64_t length = 0;  // 0: as long as the tensor
};

Result<ExternalData> external_data(const TensorProto& tensor) {
  ExternalData data;
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") data.location = entry.value();
    uint64_t* number = entry.key() == "offset" ? &data.offset : entry.key() == "length" ? &data.length : nullptr;
    if (number != nullptr && !parse_number(entry.value(), number)) {
      return Status::invalid_argument(fmt::format("its external data has {} '{}'", entry.key(), entry.value()));
    }
  }
  if (data.location.empty()) return Status::invalid_argument("its external data has no location");
  return data;
}

Result<std::vector<std::byte>> read_external(const TensorProto& tensor, uint64_t size,
                                             const std::filesystem::path& folder) {
  FOLIOT_ASSIGN_OR_RETURN(const ExternalData data, external_data(tensor));
  if (data.length != 0 && data.length != size) {
    return Status::invalid_argument(fmt::format("its external data has {} bytes instead of {}", data.length, size));
  }
  FOLIOT_ASSIGN_OR_RETURN(const std::filesystem::path path, external_path(folder, data.location));
  std::error_code error;
  const uint64_t file_bytes = std::filesystem::file_size(path, error);
  if (error || data.offset > file_bytes || size > file_bytes - data.offset) {
    return Status::invalid_argument(fmt::format("its external data {} is too short", path.string()));
  }
  std::vector<std::byte> bytes(size);
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(data.offset));
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (!file) return Status::internal(fmt::format("cannot read {}", path.string()));
  return bytes;
}

template <typename To, typename From>
std::vector<std::byte> pack(const From& values) {
  std::vector<std::byte> bytes(static_cast<size_t>(values.size()) * sizeof(To));
  for (int i = 0; i < values.size(); ++i) {
    const To value = static_cast<To>(values[i]);
    std::memcpy(bytes.data() + static_cast<size_t>(i) * sizeof(To), &value, sizeof(To));
  }
  return bytes;
}

// The values where they stand in typed fields.
std::vector<std::byte> typed_data(const TensorProto& tensor, DataType type) {
  switch (type) {
    case DataType::kFloat32: return pack<float>(tensor.float_data());
    case DataType::kFloat64: return pack<double>(tensor.double_data());
    case DataType::kInt64: return pack<int64_t>(tensor.int64_data());
    case DataType::kUint64: return pack<uint64_t>(tensor.uint64_data());
    case DataType::kUint32: return pack<uint32_t>(tensor.uint64_data());
    case DataType::kInt32: return pack<int32_t>(tensor.int32_data());
    case DataType::kInt16: return pack<int16_t>(tensor.int32_data());
    case DataType::kInt8: return pack<int8_t>(tensor.int32_data());
    case DataType::kUint8:
    case DataType::kBool: return pack<uint8_t>(tensor.int32_data());
    case DataType::kUint16:
    case DataType::kFloat16:
    case DataType::kBfloat16: return pack<uint16_t>(tensor.int32_data());
    case DataType::kBytes: break;
  }
  FOLIOT_CHECK(false);
}

// The bytes of a tensor's elements, of which there are `size` bytes; `typed` packs those of typed fields.
template <typename Typed>
Result<std::vector<std::byte>> tensor_bytes(const TensorProto& tensor, uint64_t size,
                                            const std::filesystem::path& folder, const Typed& typed) {
  std::vector<std::byte> bytes;
  if (tensor.data_location() == TensorProto::EXTERNAL) {
    FOLIOT_ASSIGN_OR_RETURN(bytes, read_external(tensor, size, folder));
  } else if (tensor.has_raw_data()) {
    const auto raw = std::as_bytes(std::span(tensor.raw_data()));
    bytes.assign(raw.begin(), raw.end());
  } else {
    bytes = typed();
  }
  if (bytes.size() == size) return bytes;
  const Shape shape(tensor.dims().begin(), tensor.dims().end());
  return Status::invalid_argument(
      fmt::format("it has {} bytes, its shape {} needs {}", bytes.size(), to_string(shape), size));
}

Result<Constant> convert_tensor(const TensorProto& tensor, const std::filesystem::path& folder) {
  const auto convert = [&]() -> Result<Constant> {
    Shape shape(tensor.dims().begin(), tensor.dims().end());
    if (const SmallType* const small = find_small_type(tensor.data_type())) {
      FOLIOT_RETURN_IF_ERROR(checked_byte_size(small->wide, shape).status());
      const uint64_t count = element_count(shape);
      FOLIOT_ASSIGN_OR_RETURN(const std::vector<std::byte> packed,
                              tensor_bytes(tensor, packed_bytes(*small, count), folder,
                                           [&] { return pack<uint8_t>(tensor.int32_data()); }));
      return make_constant(small->wide, std::move(shape), widen(*small, packed, count));
    }
    FOLIOT_ASSIGN_OR_RETURN(const DataType type, convert_type(tensor.data_type()));
    FOLIOT_ASSIGN_OR_RETURN(const uint64_t size, checked_byte_size(type, shape));
    FOLIOT_ASSIGN_OR_RETURN(std::vector<std::byte> bytes,
                            tensor_bytes(tensor, size, folder, [&] { return typed_data(tensor, type); }));
    return make_constant(type, std::move(shape), std::move(bytes));
  };
  Result<Constant> constant = convert();
  if (!constant.ok()) return constant.status().with_context(fmt::format("tensor '{}'", tensor.name()));
  return constant;
}

// Dense, with zeros where nothing is given. Places are numbers of elements, or positions along each dimension.
Result<Constant> convert_sparse(const onnx::SparseTensorProto& sparse, const std::filesystem::path& folder) {
  const auto convert = [&]() -> Result<Constant> {
    FOLIOT_ASSIGN_OR_RETURN(const Constant values, convert_tensor(sparse.values(), folder));
    FOLIOT_ASSIGN_OR_RETURN(const Constant indices, convert_tensor(sparse.indices(), folder));
    Shape shape(sparse.dims().begin(), sparse.dims().end());
    FOLIOT_ASSIGN_OR_RETURN(const uint64_t size, checked_byte_size(values.type, shape));
    if (size > kSparseBytesMax)
      return Status::invalid_argument(fmt::format("{} bytes of it are more than {}", size, kSparseBytesMax));
    const uint64_t count = element_count(values.shape), width = size_of(values.type);
    const size_t rank = indices.shape.size() == 2 ? shape.size() : 1;
    if (indices.type != DataType::kInt64 || element_count(indices.shape) != count * rank || indices.shape.size() > 2) {
      return Status::invalid_argument(fmt::format("it has {} values and indices {}", count, to_string(indices.shape)));
    }
    std::vector<std::byte> bytes(size);
    const std::vector<int64_t> places = to_integers(indices);
    for (uint64_t i = 0; i < count; ++i) {
      int64_t place = 0;
      for (size_t d = 0; d < rank; ++d) {
        const int64_t position = places[i * rank + d];
        const int64_t extent = indices.shape.size() == 2 ? shape[d] : static_cast<int64_t>(element_count(shape));
        if (position < 0 || position >= extent) {
          return Status::invalid_argument(fmt::format("its index {} is not below {}", position, extent));
        }
        place = place * extent + position;
      }
      std::memcpy(bytes.data() + static_cast<uint64_t>(place) * width, values.bytes->data() + i * width, width);
    }
    return make_constant(values.type, std::move(shape), std::move(bytes));
  };
  Result<Constant> constant = convert();
  if (!constant.ok()) return constant.status().with_context(fmt::format("sparse tensor '{}'", sparse.values().name()));
  return constant;
}

using AttributeType = onnx::AttributeProto::AttributeType;

// Files of the first versions leave the type out.
int attribute_type(const onnx::AttributeProto& attribute) {
  if (attribute.type() != onnx::AttributeProto::UNDEFINED) return attribute.type();
  if (attribute.has_i()) return onnx::AttributeProto::INT;
  if (attribute.has_f()) return onnx::AttributeProto::FLOAT;
  if (attribute.has_s()) return onnx::AttributeProto::STRING;
  if (attribute.has_t()) return onnx::AttributeProto::TENSOR;
  if (attribute.has_g()) return onnx::AttributeProto::GRAPH;
  if (attribute.ints_size() > 0) return onnx::AttributeProto::INTS;
  if (attribute.floats_size() > 0) return onnx::AttributeProto::FLOATS;
  if (attribute.strings_size() > 0) return onnx::AttributeProto::STRINGS;
  return onnx::AttributeProto::UNDEFINED;
}

Result<OnnxGraph> convert_subgraph(const onnx::GraphProto& graph, const std::filesystem::path& folder);

Result<OnnxAttribute> convert_attribute(const onnx::AttributeProto& attribute, const std::filesystem::path& folder) {
  if (!attribute.ref_attr_name().empty()) return OnnxAttribute(OnnxAttributeReference{attribute.ref_attr_name()});
  switch (attribute_type(attribute)) {
    case onnx::AttributeProto::INT: return OnnxAttribute(int64_t{attribute.i()});
    case onnx::AttributeProto::FLOAT: return OnnxAttribute(attribute.f());
    case onnx::AttributeProto::STRING: return OnnxAttribute(attribute.s());
    case onnx::AttributeProto::INTS:
      return OnnxAttribute(std::vector<int64_t>(attribute.ints().begin(), attribute.ints().end()));
    case onnx::AttributeProto::FLOATS:
      return OnnxAttribute(std::vector<float>(attribute.floats().begin(), attribute.floats().end()));
    case onnx::AttributeProto::STRINGS:
      return OnnxAttribute(std::vector<std::string>(attribute.strings().begin(), attribute.strings().end()));
    case onnx::AttributeProto::TENSOR: {
      FOLIOT_ASSIGN_OR_RETURN(Constant constant, convert_tensor(attribute.t(), folder));
      return OnnxAttribute(std::move(constant));
    }
    case onnx::AttributeProto::SPARSE_TENSOR: {
      FOLIOT_ASSIGN_OR_RETURN(Constant constant, convert_sparse(attribute.sparse_tensor(), folder));
      return OnnxAttribute(std::move(constant));
    }
    case onnx::AttributeProto::GRAPH: {
      FOLIOT_ASSIGN_OR_RETURN(OnnxGraph graph, convert_subgraph(attribute.g(), folder));
      return OnnxAttribute(std::make_shared<const OnnxGraph>(std::move(graph)));
    }
    default: return OnnxAttribute(OnnxUnsupportedAttribute{});
  }
}

std::string normalized_domain(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

// Fields of ONNX that this version of its library does not know, by their numbers.
constexpr int kNodeOverload = 8, kFunctionOverload = 13, kFunctionAttributes = 11;

std::vector<std::string> unknown_fields(const google::protobuf::Message& message, int number) {
  const google::protobuf::UnknownFieldSet& fields = message.GetReflection()->GetUnknownFields(message);
  std::vector<std::string> found;
  for (int i = 0; i < fields.field_count(); ++i) {
    const google::protobuf::UnknownField& field = fields.field(i);
    if (field.number() != number || field.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) continue;
    found.push_back(field.length_delimited());
  }
  return found;
}

std::string overload_of(const google::protobuf::Message& message, int number) {
  std::vector<std::string> found = unknown_fields(message, number);
  return found.empty() ? "" : std::move(found.back());
}

Result<OnnxNode> convert_node(const onnx::NodeProto& node, const std::filesystem::path& folder) {
  OnnxNode result{.name = node.name(),
                  .type = node.op_type(),
                  .domain = normalized_domain(node.domain()),
                  .overload = overload_of(node, kNodeOverload),
                  .inputs = {node.input().begin(), node.input().end()},
                  .outputs = {node.output().begin(), node.output().end()},
                  .attributes = {}};
  for (const auto& attribute : node.attribute()) {
    Result<OnnxAttribute> value = convert_attribute(attribute, folder);
    if (!value.ok()) {
      return value.status().with_context(
          fmt::format("node '{}' ({}) attribute '{}'", node.name(), node.op_type(), attribute.name()));
    }
    result.attributes.insert_or_assign(attribute.name(), std::move(value).value());
  }
  return result;
}

template <typename Initializers>
Status read_constants(const Initializers& initializers, const std::filesystem::path& folder, OnnxGraph* graph) {
  for (const auto& tensor : initializers) {
    FOLIOT_ASSIGN_OR_RETURN(Constant constant, convert_tensor(tensor, folder));
    if (!graph->constants.emplace(tensor.name(), std::move(constant)).second) {
      return Status::invalid_argument(fmt::format("initializer '{}' stands there twice", tensor.name()));
    }
  }
  return {};
}

template <typename Nodes>
Status read_nodes(const Nodes& nodes, const std::filesystem::path& folder, OnnxGraph* graph) {
  for (const auto& node : nodes) {
    FOLIOT_ASSIGN_OR_RETURN(OnnxNode converted, convert_node(node, folder));
    graph->nodes.push_back(std::move(converted));
  }
  sort_nodes(&graph->nodes);
  return {};
}

template <typename Initializers>
Status read_sparse_constants(const Initializers& initializers, const std::filesystem::path& folder,
                             std::map<std::string, Constant>* constants) {
  for (const auto& sparse : initializers) {
    FOLIOT_ASSIGN_OR_RETURN(Constant constant, convert_sparse(sparse, folder));
    if (!constants->emplace(sparse.values().name(), std::move(constant)).second) {
      return Status::invalid_argument(fmt::format("initializer '{}' stands there twice", sparse.values().name()));
    }
  }
  return {};
}

Result<OnnxGraph> convert_subgraph(const onnx::GraphProto& graph, const std::filesystem::path& folder) {
  OnnxGraph result;
  for (const auto& input : graph.input()) result.inputs.push_back(input.name());
  for (const auto& output : graph.output()) result.outputs.push_back(output.name());
  FOLIOT_RETURN_IF_ERROR(read_constants(graph.initializer(), folder, &result));
  FOLIOT_RETURN_IF_ERROR(read_sparse_constants(graph.sparse_initializer(), folder, &result.constants));
  FOLIOT_RETURN_IF_ERROR(read_nodes(graph.node(), folder, &result));
  return result;
}

int64_t own_opset(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& opsets, int64_t otherwise) {
  for (const auto& opset : opsets) {
    if (normalized_domain(opset.domain()).empty()) return opset.version();
  }
  return otherwise;
}

Result<OnnxFunction> convert_function(const onnx::FunctionProto& function, const std::filesystem::path& folder,
                                      int64_t opset) {
  OnnxFunction result;
  result.opset = own_opset(function.opset_import(), opset);
  result.body.inputs = {function.input().begin(), function.input().end()};
  result.body.outputs = {function.output().begin(), function.output().end()};
  FOLIOT_RETURN_IF_ERROR(read_nodes(function.node(), folder, &result.body));
  for (const std::string& bytes : unknown_fields(function, kFunctionAttributes)) {
    onnx::AttributeProto attribute;
    if (!attribute.ParseFromString(bytes)) return Status::invalid_argument("a default attribute is damaged");
    FOLIOT_ASSIGN_OR_RETURN(OnnxAttribute value, convert_attribute(attribute, folder));
    result.defaults.insert_or_assign(attribute.name(), std::move(value));
  }
  return result;
}

Status read_functions(const onnx::ModelProto& proto, const std::filesystem::path& folder, OnnxModel* model) {
  for (const auto& function : proto.functions()) {
    const std::string where = fmt::format("function '{}'", function.name());
    Result<OnnxFunction> converted = convert_function(function, folder, model->opset);
    if (!converted.ok()) return converted.status().with_context(where);
    auto name =
        std::tuple(normalized_domain(function.domain()), function.name(), overload_of(function, kFunctionOverload));
    if (!model->functions.emplace(std::move(name), std::move(converted).value()).second) {
      return Status::invalid_argument("it is defined twice").with_context(where);
    }
  }
  return {};
}

bool is_text(const onnx::ValueInfoProto& info) { return info.type().tensor_type().elem_type() == TensorProto::STRING; }

// Classes as text: names, or the numbers that are their labels.
std::vector<std::string> classes_of(const onnx::NodeProto& node) {
  std::vector<std::string> classes;
  for (const auto& attribute : node.attribute()) {
    if (!attribute.name().starts_with("classlabels_")) continue;
    for (const std::string& name : attribute.strings()) classes.push_back(name);
    for (int64_t label : attribute.ints()) classes.push_back(std::to_string(label));
  }
  return classes;
}

// What the classes of a model are called. A model has one list of names, since an output
// that is one of them does not say of which.
class ClassNames {
 public:
  Status add(const google::protobuf::RepeatedPtrField<std::string>& given) {
    std::vector<std::string> names(given.begin(), given.end());
    if (names.empty() || names == names_) return {};
    if (!names_.empty()) {
      return Status::unimplemented(
          fmt::format("it has two lists of names, ['{}', ...] and ['{}', ...]; a model with one can be served",
                      names_[0], names[0]));
    }
    FOLIOT_RETURN_IF_ERROR(check_labels(names));
    names_ = std::move(names);
    return {};
  }

  // As attributes and initializers have them.
  Status add_all(const onnx::GraphProto& graph) {
    for (const auto& node : graph.node()) {
      for (const auto& attribute : node.attribute()) {
        if (attribute.name() != "classlabels_strings" && attribute.name() != "values_strings") continue;
        FOLIOT_RETURN_IF_ERROR(add(attribute.strings()).with_context(fmt::format("node '{}'", node.name())));
      }
    }
    for (const auto& tensor : graph.initializer()) {
      if (tensor.data_type() != TensorProto::STRING) continue;
      FOLIOT_RETURN_IF_ERROR(add(tensor.string_data()).with_context(fmt::format("tensor '{}'", tensor.name())));
    }
    return {};
  }

  const std::vector<std::string>& list() const { return names_; }

 private:
  std::vector<std::string> names_;
};

// The positions of the names in a tensor of them.
Result<Constant> convert_names(const TensorProto& tensor) {
  std::vector<int64_t> positions(static_cast<size_t>(tensor.string_data_size()));
  std::iota(positions.begin(), positions.end(), 0);
  Shape shape(tensor.dims().begin(), tensor.dims().end());
  const Result<uint64_t> bytes = checked_byte_size(DataType::kInt64, shape);
  if (!bytes.ok() || *bytes != positions.size() * sizeof(int64_t)) {
    return Status::invalid_argument(
        fmt::format("tensor '{}': it has {} names, not as many as its shape", tensor.name(), positions.size()));
  }
  return make_constant(std::move(shape), std::span<const int64_t>(positions));
}

// The ZipMap nodes that make outputs of a graph, by the outputs' names.
using ZipMaps = std::map<std::string, const onnx::NodeProto*>;

ZipMaps zip_maps_of(const onnx::GraphProto& graph) {
  std::set<std::string> outputs;
  for (const auto& output : graph.output()) outputs.insert(output.name());
  ZipMaps found;
  for (const auto& node : graph.node()) {
    if (node.op_type() != "ZipMap" || node.input_size() != 1 || node.output_size() != 1) continue;
    if (outputs.contains(node.output(0))) found.emplace(node.output(0), &node);
  }
  return found;
}

Result<OnnxValueInfo> convert_value_info(const onnx::ValueInfoProto& info) {
  OnnxValueInfo result;
  result.name = info.name();
  if (!info.type().has_tensor_type()) {
    return Status::unimplemented(fmt::format("'{}' is not a tensor; only tensors can be served", info.name()));
  }
  const auto& tensor = info.type().tensor_type();
  Result<DataType> type = convert_type(tensor.elem_type());
  if (!type.ok()) return type.status().with_context(fmt::format("'{}'", info.name()));
  result.type = *type;
  if (!tensor.has_shape()) return result;
  result.dimensions.emplace();
  for (const auto& dimension : tensor.shape().dim()) {
    OnnxDimension converted;
    if (dimension.has_dim_value() && dimension.dim_value() > 0) {
      converted.value = dimension.dim_value();
    } else if (dimension.dim_param() != "?") {
      converted.symbol = dimension.dim_param();
    }
    result.dimensions->push_back(std::move(converted));
  }
  return result;
}

// A model of many outputs needs no note on each.
void note(std::string text, OnnxModel* model) {
  constexpr size_t kNotesMax = 4;
  if (model->notes.size() < kNotesMax) model->notes.push_back(std::move(text));
}

// A sequence of maps that ZipMap makes is left out, and what it is made of given out.
Result<OnnxValueInfo> convert_output(const onnx::ValueInfoProto& output, const ZipMaps& zip_maps,
                                     const ClassNames& names, OnnxModel* model) {
  if (const auto zip_map = zip_maps.find(output.name()); zip_map != zip_maps.end()) {
    OnnxValueInfo info{
        .name = output.name(), .type = DataType::kFloat32, .dimensions = {}, .labels = classes_of(*zip_map->second)};
    FOLIOT_RETURN_IF_ERROR(
        check_labels(info.labels).with_context(fmt::format("node '{}' (ZipMap)", zip_map->second->name())));
    note(fmt::format("ZipMap is left out: output '{}' is a tensor with one column for each class", info.name), model);
    return info;
  }
  if (!is_text(output) || names.list().empty()) return convert_value_info(output);
  onnx::ValueInfoProto counted = output;
  counted.mutable_type()->mutable_tensor_type()->set_elem_type(TensorProto::INT64);
  FOLIOT_ASSIGN_OR_RETURN(OnnxValueInfo info, convert_value_info(counted));
  info.labels = names.list();
  note(fmt::format("output '{}' gives the numbers of classes, from 0 on, instead of their names", info.name), model);
  return info;
}

// A model of other domains' operators only may leave ONNX's own out.
bool needs_own_opset(const onnx::ModelProto& proto) {
  const auto is_own = [](const auto& item) { return normalized_domain(item.domain()).empty(); };
  return std::ranges::any_of(proto.opset_import(), is_own) || std::ranges::any_of(proto.graph().node(), is_own);
}

Status read_opsets(const onnx::ModelProto& proto, OnnxModel* model) {
  for (const auto& opset : proto.opset_import()) {
    const std::string domain = normalized_domain(opset.domain());
    if (domain.empty()) {
      model->opset = opset.version();
    } else {
      model->opsets[domain] = opset.version();
    }
  }
  if (model->opset < kOpsetMin && needs_own_opset(proto)) {
    return Status::unimplemented(
        fmt::format("it uses opset {}; opset {} or later is needed: convert it with "
                    "onnx.version_converter",
                    model->opset, kOpsetMin));
  }
  if (model->opset > kOpsetMax || proto.ir_version() > kIrVersionMax) {
    return Status::unimplemented(
        fmt::format("it uses opset {} and IR version {}; known are those up to {} and {}: export it with an earlier "
                    "opset, or convert it with onnx.version_converter",
                    model->opset, proto.ir_version(), kOpsetMax, kIrVersionMax));
  }
  if (const auto classic = model->opsets.find("ai.onnx.ml");
      classic != model->opsets.end() && classic->second > kClassicOpsetMax) {
    return Status::unimplemented(
        fmt::format("it uses opset {} of ai.onnx.ml; known are those up to {}: export it with an earlier one",
                    classic->second, kClassicOpsetMax));
  }
  return {};
}

Status read_graph(const onnx::GraphProto& graph, const std::filesystem::path& folder, OnnxModel* model) {
  if (graph.node_size() > kNodesMax) {
    return Status::resource_exhausted(fmt::format("it has {} nodes, more than {}", graph.node_size(), kNodesMax));
  }
  ClassNames names;
  FOLIOT_RETURN_IF_ERROR(names.add_all(graph));
  for (const auto& tensor : graph.initializer()) {
    FOLIOT_ASSIGN_OR_RETURN(Constant constant, tensor.data_type() == TensorProto::STRING
                                                   ? convert_names(tensor)
                                                   : convert_tensor(tensor, folder));
    if (!model->constants.emplace(tensor.name(), std::move(constant)).second) {
      return Status::invalid_argument(fmt::format("initializer '{}' stands there twice", tensor.name()));
    }
  }
  FOLIOT_RETURN_IF_ERROR(read_sparse_constants(graph.sparse_initializer(), folder, &model->constants));
  for (const auto& input : graph.input()) {
    if (model->constants.contains(input.name())) continue;
    FOLIOT_ASSIGN_OR_RETURN(OnnxValueInfo info, convert_value_info(input));
    model->inputs.push_back(std::move(info));
  }
  const ZipMaps zip_maps = zip_maps_of(graph);
  for (const auto& output : graph.output()) {
    FOLIOT_ASSIGN_OR_RETURN(OnnxValueInfo info, convert_output(output, zip_maps, names, model));
    model->outputs.push_back(std::move(info));
  }
  for (const auto& node : graph.node()) {
    FOLIOT_ASSIGN_OR_RETURN(OnnxNode converted, convert_node(node, folder));
    if (converted.type == "ZipMap" && converted.outputs.size() == 1 && zip_maps.contains(converted.outputs[0])) {
      converted.type = "Identity";
      converted.domain.clear();
    }
    model->nodes.push_back(std::move(converted));
  }
  sort_nodes(&model->nodes);
  return {};
}

// Nodes whose result has the type of an operand. Where that may be a small type, which is read as a wider one, they
// would compute with another range.
class TypeGivers {
 public:
  void read(const onnx::GraphProto& graph) {
    for (const auto& tensor : graph.initializer()) read(tensor, tensor.name());
    for (const auto& tensor : graph.sparse_initializer()) read(tensor.values(), tensor.values().name());
    read(graph.node());
  }

  void read(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) {
    for (const auto& node : nodes) {
      const int giver = node.op_type() == "QuantizeLinear" ? 2 : node.op_type() == "CastLike" ? 1 : -1;
      if (giver >= 0 && node.input_size() > giver && !node.input(giver).empty()) nodes_.emplace_back(&node, giver);
      for (const auto& attribute : node.attribute()) {
        if (attribute.has_t()) read(attribute.t(), node.op_type() == "Constant" ? node.output(0) : "");
        if (attribute.has_g()) read(attribute.g());
      }
    }
  }

  Status check() const {
    if (!any_small_) return {};
    for (const auto& [node, giver] : nodes_) {
      if (wide_.contains(node->input(giver))) continue;
      return Status::unimplemented(
          fmt::format("node '{}' ({}): its result may have the type of '{}', of fewer than 8 bits or of 8 bits and "
                      "floating; only weights are supported in such types",
                      node->name(), node->op_type(), node->input(giver)));
    }
    return {};
  }

 private:
  void read(const TensorProto& tensor, const std::string& name) {
    if (find_small_type(tensor.data_type()) != nullptr) {
      any_small_ = true;
    } else {
      wide_.insert(name);
    }
  }

  bool any_small_ = false;
  std::set<std::string> wide_;
  std::vector<std::pair<const onnx::NodeProto*, int>> nodes_;
};

Result<onnx::ModelProto> parse(std::span<const std::byte> bytes) {
  constexpr size_t kLimit = std::numeric_limits<int>::max();
  if (bytes.size() > kLimit) {
    return Status::invalid_argument("it is larger than 2 GiB; save it with external data");
  }
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  stream.SetTotalBytesLimit(std::numeric_limits<int>::max());
  onnx::ModelProto proto;
  if (!proto.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage() || !proto.has_graph()) {
    return Status::invalid_argument("it is not an ONNX model, or is truncated");
  }
  return proto;
}

// The key under which a tensor names the file that has its data.
constexpr std::string_view kLocation = "location";

void list_locations(const TensorProto& tensor, std::set<std::string>* locations) {
  if (tensor.data_location() != TensorProto::EXTERNAL) return;
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == kLocation) locations->insert(entry.value());
  }
}

void list_locations(const onnx::SparseTensorProto& tensor, std::set<std::string>* locations) {
  list_locations(tensor.values(), locations);
  list_locations(tensor.indices(), locations);
}

void list_locations(const onnx::GraphProto& graph, std::set<std::string>* locations);

void list_locations(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                    std::set<std::string>* locations) {
  for (const auto& node : nodes) {
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_t()) list_locations(attribute.t(), locations);
      if (attribute.has_sparse_tensor()) list_locations(attribute.sparse_tensor(), locations);
      if (attribute.has_g()) list_locations(attribute.g(), locations);
    }
  }
}

void list_locations(const onnx::GraphProto& graph, std::set<std::string>* locations) {
  for (const auto& tensor : graph.initializer()) list_locations(tensor, locations);
  for (const auto& tensor : graph.sparse_initializer()) list_locations(tensor, locations);
  list_locations(graph.node(), locations);
}

}  // namespace

Result<std::vector<std::byte>> read_onnx_file(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return Status::not_found(fmt::format("{} does not exist; check the path", path.string()));
  }
  const uint64_t size = std::filesystem::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file) return Status::invalid_argument(fmt::format("{} cannot be opened", path.string()));
  std::vector<std::byte> bytes(size);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (!file) return Status::internal(fmt::format("{} cannot be read", path.string()));
  return bytes;
}

Result<OnnxModel> parse_onnx(std::span<const std::byte> bytes, const std::filesystem::path& folder) {
  FOLIOT_ASSIGN_OR_RETURN(const onnx::ModelProto proto, parse(bytes));
  TypeGivers givers;
  givers.read(proto.graph());
  for (const auto& function : proto.functions()) givers.read(function.node());
  FOLIOT_RETURN_IF_ERROR(givers.check());
  OnnxModel model;
  FOLIOT_RETURN_IF_ERROR(read_opsets(proto, &model));
  FOLIOT_RETURN_IF_ERROR(read_graph(proto.graph(), folder, &model));
  FOLIOT_RETURN_IF_ERROR(read_functions(proto, folder, &model));
  return model;
}

Result<OnnxModel> read_onnx(const std::filesystem::path& path) {
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, read_onnx_file(path));
  Result<OnnxModel> model = parse_onnx(bytes, path.parent_path());
  if (!model.ok()) return model.status().with_context(path.string());
  return model;
}

Result<std::vector<std::filesystem::path>> list_onnx_files(const std::filesystem::path& path) {
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, read_onnx_file(path));
  return list_onnx_files(path, bytes);
}

Result<std::vector<std::filesystem::path>> list_onnx_files(const std::filesystem::path& path,
                                                           std::span<const std::byte> bytes) {
  // Parsing copies all weights, and most models name no other file.
  if (::memmem(bytes.data(), bytes.size(), kLocation.data(), kLocation.size()) == nullptr) return std::vector{path};
  const Result<onnx::ModelProto> proto = parse(bytes);
  if (!proto.ok()) return proto.status().with_context(path.string());
  std::set<std::string> locations;
  list_locations(proto->graph(), &locations);
  for (const auto& function : proto->functions()) list_locations(function.node(), &locations);
  std::vector<std::filesystem::path> files{path};
  for (const std::string& location : locations) {
    Result<std::filesystem::path> file = external_path(path.parent_path(), location);
    if (!file.ok()) return file.status().with_context(path.string());
    files.push_back(std::move(file).value());
  }
  return files;
}

bool is_named_after(const std::filesystem::path& file, const std::filesystem::path& model) {
  std::error_code error;
  const auto folder_of = [&](const std::filesystem::path& path) {
    return std::filesystem::weakly_canonical(path.has_parent_path() ? path.parent_path() : ".", error);
  };
  return file.filename().string().starts_with(model.stem().string()) && folder_of(file) == folder_of(model);
}

}  // namespace foliot
