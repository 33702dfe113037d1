#include "edge/requests/json_request.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <charconv>
#include <utility>

#include "edge/requests/content_type.h"
#include "edge/requests/json_elements.h"
#include "edge/requests/json_table.h"
#include "edge/requests/request_parameters.h"
#include "foundation/base/check.h"
#include "foundation/base/heap.h"

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

// `has_nulls` becomes true if some of the numbers are null.
Result<std::string> convert_data(std::string_view input, std::string_view datatype, element data, bool& has_nulls) {
  const std::optional<DataType> type = parse_data_type(datatype);
  if (!type) return bad_json(fmt::format("input '{}': unknown datatype '{}'", input, datatype));
  if (*type == DataType::kFloat16 || *type == DataType::kBfloat16)
    return bad_json(fmt::format("input '{}': {} cannot be read from JSON; send it as binary data", input, datatype));
  FOLIOT_ASSIGN_OR_RETURN(const array values, read_array(data, fmt::format("'data' of input '{}'", input)));
  std::string bytes;
  const bool strings = *type == DataType::kBytes;
  bytes.reserve(values.size() * (strings ? sizeof(uint32_t) : size_of(*type)));
  JsonElements elements(*type, bytes, true);
  const bool is_tensor = elements.add(data);
  has_nulls = has_nulls || elements.has_nulls();
  if (elements.is_ragged())
    return bad_json(
        fmt::format("input '{}': the rows of 'data' are ragged; each must have as many elements as the first", input));
  if (!is_tensor)
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

Result<ContentType> read_content_type(element value) {
  FOLIOT_ASSIGN_OR_RETURN(const std::string_view name, read_string(value, "'content_type'"));
  return parse_content_type(name);
}

bool is_table_member(TableForm form, std::string_view key) {
  if (key == "instances" || key == "inputs") return true;
  return form == TableForm::kInvocations && (key == "dataframe_split" || key == "dataframe_records");
}

std::string_view table_members(TableForm form) {
  return form == TableForm::kV1 ? "'instances' or 'inputs'"
                                : "'dataframe_split', 'dataframe_records', 'instances' or 'inputs'";
}

}  // namespace

// One request's decoding: `rest` is what is left of the binary part.
struct JsonRequestDecoder::Parser {
  simdjson::dom::parser parser;
  JsonRequest request;
  std::span<const std::byte> rest;

  // `json_size` bytes of the body.
  Result<object> parse(std::string& body, size_t json_size);
  Status read_document(object document);
  Status read_table(object document, TableForm form, std::shared_ptr<const ModelInfo> model);
  Status read_parameters(element value);
  Status read_input(element value);
  Status read_input_data(TensorView& input, std::optional<element> data, std::optional<uint64_t> binary_bytes);
  // Bytes that show what the request keeps from now on.
  std::span<const std::byte> keep(std::string bytes);
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
  ContentType content_type = ContentType::kNone;
  if (parameters)
    for (const auto& [key, parameter] : *parameters) {
      if (key == "binary_data_size") {
        FOLIOT_ASSIGN_OR_RETURN(binary_bytes, read<uint64_t>(parameter, "'binary_data_size'", "a number of bytes"));
      } else if (key == kContentTypeParameter) {
        FOLIOT_ASSIGN_OR_RETURN(content_type, read_content_type(parameter));
      } else {
        FOLIOT_RETURN_IF_ERROR(read_input_parameter(input.name, key, request.parameters.unknown));
      }
    }
  FOLIOT_RETURN_IF_ERROR(read_input_data(input, data, binary_bytes));
  if (content_type == ContentType::kBase64 && input.datatype == to_string(DataType::kBytes)) {
    input.bytes = keep(decode_base64_strings(input.bytes));
  }
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
  FOLIOT_ASSIGN_OR_RETURN(std::string bytes, convert_data(input.name, input.datatype, *data, request.has_nulls));
  input.bytes = keep(std::move(bytes));
  return Status::ok_status();
}

std::span<const std::byte> JsonRequestDecoder::Parser::keep(std::string bytes) {
  // A heap buffer stays where it is when the list of strings grows; a short
  // string's does not.
  bytes.reserve(sizeof(std::string));
  const std::span<const std::byte> kept = std::as_bytes(std::span(bytes));
  request.converted.push_back(std::move(bytes));
  return kept;
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
  ContentType content_type = ContentType::kNone;
  if (parameters)
    for (const auto& [key, parameter] : *parameters) {
      if (key == "binary_data") {
        FOLIOT_ASSIGN_OR_RETURN(binary, read<bool>(parameter, "'binary_data'", "true or false"));
      } else if (key == kContentTypeParameter) {
        FOLIOT_ASSIGN_OR_RETURN(content_type, read_content_type(parameter));
      } else {
        FOLIOT_RETURN_IF_ERROR(read_output_parameter(name, key, value_of(parameter), request.parameters.unknown));
      }
    }
  request.query.outputs.push_back(name);
  request.output_is_binary.push_back(binary);
  request.output_types.push_back(content_type);
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
// A long text's tape is several times as long, and a mapping of its own: that may take the kernel tens of
// milliseconds to end, in which no thread gets memory.
JsonRequestDecoder::~JsonRequestDecoder() {
  simdjson::dom::parser& parser = parser_->parser;
  const size_t text = parser.capacity();
  give_back(std::as_writable_bytes(std::span(parser.doc.tape.get(), text)));
  give_back(std::as_writable_bytes(std::span(parser.doc.string_buf.get(), text)));
  give_back(std::as_writable_bytes(std::span(parser.implementation->structural_indexes.get(), text)));
}

Result<object> JsonRequestDecoder::Parser::parse(std::string& body, size_t json_size) {
  // The parser reads ahead; what it finds there does not matter.
  if (body.capacity() < json_size + simdjson::SIMDJSON_PADDING) body.reserve(json_size + simdjson::SIMDJSON_PADDING);
  request = JsonRequest{};
  rest = std::as_bytes(std::span(body)).subspan(json_size);
  element root;
  if (const auto error = parser.parse(body.data(), json_size, false).get(root); error != simdjson::SUCCESS) {
    // The result shows nothing of this copy.
    const std::string quoted = quote_not_finite(std::string_view(body).substr(0, json_size));
    if (quoted.empty() || parser.parse(quoted).get(root) != simdjson::SUCCESS)
      return bad_json(fmt::format("the request is not valid JSON: {}", simdjson::error_message(error)));
  }
  return read_object(root, "the request");
}

Status JsonRequestDecoder::Parser::read_table(object document, TableForm form, std::shared_ptr<const ModelInfo> model) {
  std::string_view member;
  element table;
  for (const auto& [key, value] : document) {
    if (key == "parameters") {
      FOLIOT_RETURN_IF_ERROR(read_parameters(value));
    } else if (!is_table_member(form, key)) {
      request.parameters.unknown.add(NamePlace::kBody, key);
    } else if (!member.empty()) {
      return bad_json(
          fmt::format("the request has both '{}' and '{}'; send exactly one of {}", member, key, table_members(form)));
    } else {
      member = key;
      table = value;
    }
  }
  if (member.empty()) return bad_json(fmt::format("the request has no {}; send exactly one", table_members(form)));
  FOLIOT_ASSIGN_OR_RETURN(JsonTable read, read_json_table(member, table, *model));
  request.query.inputs = std::move(read.inputs);
  request.converted = std::move(read.converted);
  request.model = std::move(model);
  return Status();
}

Result<JsonRequest> JsonRequestDecoder::decode(std::string& body, std::optional<size_t> json_bytes) {
  const size_t json_size = json_bytes.value_or(body.size());
  FOLIOT_CHECK(json_size <= body.size());
  FOLIOT_ASSIGN_OR_RETURN(const object document, parser_->parse(body, json_size));
  FOLIOT_RETURN_IF_ERROR(parser_->read_document(document));
  return std::move(parser_->request);
}

Result<JsonRequest> JsonRequestDecoder::decode_table(std::string& body, TableForm form,
                                                     std::shared_ptr<const ModelInfo> model) {
  FOLIOT_ASSIGN_OR_RETURN(const object document, parser_->parse(body, body.size()));
  FOLIOT_RETURN_IF_ERROR(parser_->read_table(document, form, std::move(model)));
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
