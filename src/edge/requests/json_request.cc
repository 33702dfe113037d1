#include "edge/requests/json_request.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "edge/requests/request_parameters.h"
#include "foundation/core/serialized_string.h"

namespace foliot {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

// Deeper nesting than any tensor has; bounds the recursion over `data`.
constexpr size_t kDepthMax = 64;
// The parser starts with room for this much JSON, and grows.
constexpr size_t kInitialBytes = 64 << 10;

Status bad_json(std::string message) { return Status::invalid_argument(std::move(message)); }

template <typename T>
Result<T> read(element value, std::string_view what, std::string_view kind) {
  T typed;
  if (value.get(typed) != simdjson::SUCCESS) return bad_json(fmt::format("{} must be {}", what, kind));
  return typed;
}

Result<std::string_view> read_string(element value, std::string_view what) {
  return read<std::string_view>(value, what, "a string");
}
Result<object> read_object(element value, std::string_view what) { return read<object>(value, what, "an object"); }
Result<array> read_array(element value, std::string_view what) { return read<array>(value, what, "an array"); }

// ---- Numbers that JSON has none for

// Which Triton and its clients write all the same, and the number that each is.
constexpr std::pair<std::string_view, double> kNotFinite[] = {
    {"NaN", std::numeric_limits<double>::quiet_NaN()},  {"Infinity", std::numeric_limits<double>::infinity()},
    {"Inf", std::numeric_limits<double>::infinity()},   {"-Infinity", -std::numeric_limits<double>::infinity()},
    {"-Inf", -std::numeric_limits<double>::infinity()},
};

// The same JSON with them in quotes; empty if there are none.
std::string quote_not_finite(std::string_view json) {
  std::string quoted;
  size_t copied = 0;
  bool in_string = false;
  for (size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '"') in_string = !in_string;
    if (in_string) {
      if (json[i] == '\\') ++i;
      continue;
    }
    if (json[i] != 'N' && json[i] != 'I' && json[i] != '-') continue;
    const auto begins = [&](const auto& named) { return json.substr(i).starts_with(named.first); };
    const auto found = std::ranges::find_if(kNotFinite, begins);
    if (found == std::end(kNotFinite)) continue;
    quoted.append(json.substr(copied, i - copied)).append(1, '"').append(found->first).append(1, '"');
    copied = i + found->first.size();
    i = copied - 1;
  }
  return copied == 0 ? std::string() : quoted.append(json.substr(copied));
}

// As a string, as protobuf's JSON writes them, or from quote_not_finite().
bool get_not_finite(element value, double& number) {
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS) return false;
  const auto found = std::ranges::find(kNotFinite, text, [](const auto& named) { return named.first; });
  if (found == std::end(kNotFinite)) return false;
  number = found->second;
  return true;
}

// ---- Numbers of `data` to little-endian bytes

template <typename T>
bool get_number(element value, T& number) {
  if constexpr (std::is_floating_point_v<T>) {
    double wide;
    if (get_not_finite(value, wide)) {
      number = static_cast<T>(wide);
      return true;
    }
    if (value.get(wide) != simdjson::SUCCESS) return false;
    number = static_cast<T>(wide);
    return std::isfinite(number);
  } else {
    using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
    Wide wide;
    if (value.get(wide) != simdjson::SUCCESS) return false;
    number = static_cast<T>(wide);
    return wide >= Wide{std::numeric_limits<T>::min()} && wide <= Wide{std::numeric_limits<T>::max()};
  }
}

bool get_bool(element value, uint8_t& flag) {
  bool truth;
  if (value.get(truth) == simdjson::SUCCESS) {
    flag = truth ? 1 : 0;
    return true;
  }
  return get_number(value, flag) && flag <= 1;
}

// Appends all elements of arrays nested to any depth, in order. Arrays of one depth must have one length, and hold
// either arrays or elements: rows that are ragged are a tensor of no shape.
class Flattener {
 public:
  explicit Flattener(std::string& bytes) : bytes_(bytes) {}

  template <typename T, typename Get>
  bool flatten(array values, Get get) {
    const auto append = [&](element value) {
      T number;
      if (!get(value, number)) return false;
      char raw[sizeof(T)];
      std::memcpy(raw, &number, sizeof(T));
      bytes_.append(raw, sizeof(T));
      return true;
    };
    return visit(values, append, 0);
  }
  template <typename T>
  bool flatten_numbers(array values) {
    return flatten<T>(values, get_number<T>);
  }
  // As the protocol's binary data has them: the length of each, then its bytes.
  bool flatten_strings(array values) {
    const auto append = [&](element value) {
      std::string_view text;
      if (value.get(text) != simdjson::SUCCESS) return false;
      append_string(bytes_, text);
      return true;
    };
    return visit(values, append, 0);
  }

  // Why a visit failed, if for that.
  bool is_ragged() const { return is_ragged_; }

 private:
  struct Level {
    std::optional<size_t> length;
    bool has_arrays = false;
    bool has_elements = false;
  };

  bool visit(array values, const auto& append, size_t depth) {
    if (levels_.size() == depth) levels_.emplace_back();
    size_t length = 0;
    for (element value : values) {
      ++length;
      array nested;
      const bool is_array = value.get(nested) == simdjson::SUCCESS;
      (is_array ? levels_[depth].has_arrays : levels_[depth].has_elements) = true;
      if (is_array ? !visit(nested, append, depth + 1) : !append(value)) return false;
    }
    Level& level = levels_[depth];
    if (!level.length) level.length = length;
    is_ragged_ = is_ragged_ || *level.length != length || (level.has_arrays && level.has_elements);
    return !is_ragged_;
  }

  std::string& bytes_;
  std::vector<Level> levels_;  // by depth, at most kDepthMax
  bool is_ragged_ = false;
};

bool flatten_as(DataType type, array values, Flattener& to) {
  switch (type) {
    case DataType::kBool: return to.flatten<uint8_t>(values, get_bool);
    case DataType::kUint8: return to.flatten_numbers<uint8_t>(values);
    case DataType::kUint16: return to.flatten_numbers<uint16_t>(values);
    case DataType::kUint32: return to.flatten_numbers<uint32_t>(values);
    case DataType::kUint64: return to.flatten_numbers<uint64_t>(values);
    case DataType::kInt8: return to.flatten_numbers<int8_t>(values);
    case DataType::kInt16: return to.flatten_numbers<int16_t>(values);
    case DataType::kInt32: return to.flatten_numbers<int32_t>(values);
    case DataType::kInt64: return to.flatten_numbers<int64_t>(values);
    case DataType::kFloat32: return to.flatten_numbers<float>(values);
    case DataType::kFloat64: return to.flatten_numbers<double>(values);
    case DataType::kBytes: return to.flatten_strings(values);
    case DataType::kFloat16:
    case DataType::kBfloat16: break;
  }
  return false;
}

Result<std::string> convert_data(std::string_view input, std::string_view datatype, element data) {
  const std::optional<DataType> type = parse_data_type(datatype);
  if (!type) return bad_json(fmt::format("input '{}': unknown datatype '{}'", input, datatype));
  if (*type == DataType::kFloat16 || *type == DataType::kBfloat16)
    return bad_json(fmt::format("input '{}': {} cannot be read from JSON; send it as binary data", input, datatype));
  FOLIOT_ASSIGN_OR_RETURN(const array values, read_array(data, fmt::format("'data' of input '{}'", input)));
  std::string bytes;
  const bool strings = *type == DataType::kBytes;
  bytes.reserve(values.size() * (strings ? sizeof(uint32_t) : size_of(*type)));
  Flattener flattener(bytes);
  const bool is_flat = flatten_as(*type, values, flattener);
  if (flattener.is_ragged())
    return bad_json(
        fmt::format("input '{}': the rows of 'data' are ragged; each must have as many elements as the first", input));
  if (!is_flat)
    return bad_json(fmt::format("input '{}': 'data' holds something that is not a {}", input,
                                strings ? "string" : fmt::format("number within {}", datatype)));
  return bytes;
}

// ---- Parameters

ParameterValue value_of(element value) {
  switch (value.type()) {
    case simdjson::dom::element_type::BOOL: return bool(value);
    case simdjson::dom::element_type::INT64: return int64_t(value);
    case simdjson::dom::element_type::UINT64: return uint64_t(value);
    case simdjson::dom::element_type::DOUBLE: return double(value);
    case simdjson::dom::element_type::STRING: return std::string_view(value);
    default: return std::monostate();
  }
}

}  // namespace

// One request's decoding: `rest` is what is left of the binary part.
struct JsonRequestDecoder::Parser {
  simdjson::dom::parser parser;
  JsonRequest request;
  std::span<const std::byte> rest;

  Status read_document(object document);
  Status read_parameters(element value);
  Status read_input(element value);
  Status read_input_data(TensorView& input, std::optional<element> data, std::optional<uint64_t> binary_bytes);
  Status read_output(element value);
};

Status JsonRequestDecoder::Parser::read_parameters(element value) {
  FOLIOT_ASSIGN_OR_RETURN(const object parameters, read_object(value, "'parameters'"));
  for (const auto& [key, parameter] : parameters) {
    if (key == "binary_data_output") {
      FOLIOT_ASSIGN_OR_RETURN(request.binary_by_default,
                              read<bool>(parameter, "parameter 'binary_data_output'", "true or false"));
    } else if (key == "triton_enable_empty_final_response" || key == kUnorderedParameter) {
      // Over HTTP a request has an answer of its own, which is its final one.
      FOLIOT_RETURN_IF_ERROR(read<bool>(parameter, fmt::format("parameter '{}'", key), "true or false").status());
    } else {
      FOLIOT_RETURN_IF_ERROR(read_request_parameter(key, value_of(parameter), request.parameters));
    }
  }
  return request.parameters.check();
}

Status JsonRequestDecoder::Parser::read_input(element value) {
  FOLIOT_ASSIGN_OR_RETURN(const object members, read_object(value, "each of 'inputs'"));
  TensorView input;
  std::optional<element> data;
  std::optional<object> parameters;
  std::optional<array> shape;
  for (const auto& [key, member] : members) {
    if (key == "name") {
      FOLIOT_ASSIGN_OR_RETURN(input.name, read_string(member, "'name' of an input"));
    } else if (key == "datatype") {
      FOLIOT_ASSIGN_OR_RETURN(input.datatype, read_string(member, "'datatype' of an input"));
    } else if (key == "shape") {
      FOLIOT_ASSIGN_OR_RETURN(shape, read_array(member, "'shape' of an input"));
    } else if (key == "parameters") {
      FOLIOT_ASSIGN_OR_RETURN(parameters, read_object(member, "'parameters' of an input"));
    } else if (key == "data") {
      data = member;
    } else {
      request.parameters.unknown.add(NamePlace::kInput, key);
    }
  }
  if (input.name.empty()) return bad_json("an input has no 'name'");
  if (!shape) return bad_json(fmt::format("input '{}' has no 'shape'", input.name));
  for (element extent : *shape) {
    FOLIOT_ASSIGN_OR_RETURN(const int64_t known, read<int64_t>(extent, "each of 'shape'", "a whole number"));
    input.shape.push_back(known);
  }
  std::optional<uint64_t> binary_bytes;
  if (parameters)
    for (const auto& [key, parameter] : *parameters) {
      if (key == "binary_data_size") {
        FOLIOT_ASSIGN_OR_RETURN(binary_bytes, read<uint64_t>(parameter, "'binary_data_size'", "a number of bytes"));
      } else {
        FOLIOT_RETURN_IF_ERROR(read_input_parameter(input.name, key, request.parameters.unknown));
      }
    }
  FOLIOT_RETURN_IF_ERROR(read_input_data(input, data, binary_bytes));
  request.query.inputs.push_back(std::move(input));
  return Status::ok_status();
}

Status JsonRequestDecoder::Parser::read_input_data(TensorView& input, std::optional<element> data,
                                                   std::optional<uint64_t> binary_bytes) {
  if (binary_bytes && data)
    return bad_json(fmt::format("input '{}' has both 'data' and 'binary_data_size'", input.name));
  if (binary_bytes) {
    if (*binary_bytes > rest.size())
      return bad_json(
          fmt::format("input '{}': expected {} bytes of binary data, got {}", input.name, *binary_bytes, rest.size()));
    input.bytes = rest.first(*binary_bytes);
    rest = rest.subspan(*binary_bytes);
    return Status::ok_status();
  }
  if (!data) return bad_json(fmt::format("input '{}' has neither 'data' nor 'binary_data_size'", input.name));
  FOLIOT_ASSIGN_OR_RETURN(std::string bytes, convert_data(input.name, input.datatype, *data));
  // A heap buffer stays where it is when the list of strings grows; a short
  // string's does not.
  bytes.reserve(sizeof(std::string));
  input.bytes = std::as_bytes(std::span(bytes));
  request.converted.push_back(std::move(bytes));
  return Status::ok_status();
}

Status JsonRequestDecoder::Parser::read_output(element value) {
  FOLIOT_ASSIGN_OR_RETURN(const object members, read_object(value, "each of 'outputs'"));
  std::string_view name;
  std::optional<object> parameters;
  for (const auto& [key, member] : members) {
    if (key == "name") {
      FOLIOT_ASSIGN_OR_RETURN(name, read_string(member, "'name' of an output"));
    } else if (key == "parameters") {
      FOLIOT_ASSIGN_OR_RETURN(parameters, read_object(member, "'parameters' of an output"));
    } else {
      request.parameters.unknown.add(NamePlace::kOutput, key);
    }
  }
  if (name.empty()) return bad_json("an output has no 'name'");
  bool binary = request.binary_by_default;
  if (parameters)
    for (const auto& [key, parameter] : *parameters) {
      if (key == "binary_data") {
        FOLIOT_ASSIGN_OR_RETURN(binary, read<bool>(parameter, "'binary_data'", "true or false"));
      } else {
        FOLIOT_RETURN_IF_ERROR(read_output_parameter(name, key, value_of(parameter), request.parameters.unknown));
      }
    }
  request.query.outputs.push_back(name);
  request.output_is_binary.push_back(binary);
  return Status::ok_status();
}

Status JsonRequestDecoder::Parser::read_document(object document) {
  std::optional<array> inputs;
  std::optional<array> outputs;
  for (const auto& [key, member] : document) {
    if (key == "id") {
      FOLIOT_ASSIGN_OR_RETURN(request.query.id, read_string(member, "'id'"));
    } else if (key == "parameters") {
      FOLIOT_RETURN_IF_ERROR(read_parameters(member));
    } else if (key == "inputs") {
      FOLIOT_ASSIGN_OR_RETURN(inputs, read_array(member, "'inputs'"));
    } else if (key == "outputs") {
      FOLIOT_ASSIGN_OR_RETURN(outputs, read_array(member, "'outputs'"));
    } else {
      request.parameters.unknown.add(NamePlace::kBody, key);
    }
  }
  if (!inputs) return bad_json("the request has no 'inputs'");
  for (element input : *inputs) FOLIOT_RETURN_IF_ERROR(read_input(input));
  if (outputs)
    for (element output : *outputs) FOLIOT_RETURN_IF_ERROR(read_output(output));
  if (!rest.empty()) return bad_json(fmt::format("{} bytes of binary data belong to no input", rest.size()));
  return Status::ok_status();
}

JsonRequestDecoder::JsonRequestDecoder() : parser_(std::make_unique<Parser>()) {
  FOLIOT_CHECK(parser_->parser.allocate(kInitialBytes, kDepthMax) == simdjson::SUCCESS);
}
JsonRequestDecoder::~JsonRequestDecoder() = default;

Result<JsonRequest> JsonRequestDecoder::decode(std::string& body, std::optional<size_t> json_bytes) {
  const size_t json_size = json_bytes.value_or(body.size());
  FOLIOT_CHECK(json_size <= body.size());
  // The parser reads ahead; what it finds there does not matter.
  if (body.capacity() < json_size + simdjson::SIMDJSON_PADDING) body.reserve(json_size + simdjson::SIMDJSON_PADDING);

  parser_->request = JsonRequest{};
  parser_->rest = std::as_bytes(std::span(body)).subspan(json_size);
  element root;
  if (const auto error = parser_->parser.parse(body.data(), json_size, false).get(root); error != simdjson::SUCCESS) {
    // The result shows nothing of this copy.
    const std::string quoted = quote_not_finite(std::string_view(body).substr(0, json_size));
    if (quoted.empty() || parser_->parser.parse(quoted).get(root) != simdjson::SUCCESS)
      return bad_json(fmt::format("the request is not valid JSON: {}", simdjson::error_message(error)));
  }
  FOLIOT_ASSIGN_OR_RETURN(const object document, read_object(root, "the request"));
  FOLIOT_RETURN_IF_ERROR(parser_->read_document(document));
  return std::move(parser_->request);
}

Result<std::optional<size_t>> parse_json_bytes(std::string_view header, size_t body_bytes) {
  if (header.empty()) return std::optional<size_t>();
  size_t bytes = 0;
  const auto [end, error] = std::from_chars(header.data(), header.data() + header.size(), bytes);
  if (error != std::errc() || end != header.data() + header.size() || bytes > body_bytes)
    return bad_json(
        fmt::format("Inference-Header-Content-Length is '{}'; it must be a number of bytes, at most the {} of "
                    "the body",
                    header, body_bytes));
  return std::optional<size_t>(bytes);
}

}  // namespace foliot
