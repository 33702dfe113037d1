#include "edge/grpc/grpc_request.h"

#include <fmt/format.h>
#include <inference.pb.h>

#include "answer/inference/statistics.h"
#include "edge/requests/content_type.h"
#include "edge/requests/request_parameters.h"
#include "edge/requests/server_info.h"
#include "foundation/core/serialized_string.h"
#include "foundation/core/version_table.h"

namespace foliot {
namespace {

using inference::InferParameter;
using inference::InferTensorContents;
using InferInput = inference::ModelInferRequest::InferInputTensor;
using InferOutput = inference::ModelInferRequest::InferRequestedOutputTensor;

Status bad_grpc(std::string message) { return Status::invalid_argument(std::move(message)); }

// ---- Typed contents to bytes

// Of the width of the datatype: the message's own memory.
template <typename T, typename Field>
std::span<const std::byte> view_of(const Field& field) {
  static_assert(sizeof(T) == sizeof(*field.data()));
  return std::as_bytes(std::span(field.data(), static_cast<size_t>(field.size())));
}

// Narrower than the field that carries it.
template <typename T, typename Field>
bool narrow(const Field& field, std::string& bytes) {
  bytes.reserve(static_cast<size_t>(field.size()) * sizeof(T));
  for (auto wide : field) {
    const T value = static_cast<T>(wide);
    if (static_cast<decltype(wide)>(value) != wide) return false;
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  return true;
}

// As raw contents have them: the length of each, then its bytes.
template <typename Field>
bool append_texts(const Field& field, std::string& bytes) {
  for (const std::string& text : field) append_string(bytes, text);
  return true;
}

bool narrow_as(DataType type, const InferTensorContents& contents, std::string& bytes) {
  switch (type) {
    case DataType::kUint8: return narrow<uint8_t>(contents.uint_contents(), bytes);
    case DataType::kUint16: return narrow<uint16_t>(contents.uint_contents(), bytes);
    case DataType::kInt8: return narrow<int8_t>(contents.int_contents(), bytes);
    case DataType::kInt16: return narrow<int16_t>(contents.int_contents(), bytes);
    case DataType::kBytes: return append_texts(contents.bytes_contents(), bytes);
    default: return false;
  }
}

// Bytes that show what the request keeps from now on.
std::span<const std::byte> keep(std::string bytes, GrpcRequest& request) {
  // A heap buffer stays where it is when the list of strings grows; a short
  // string's does not.
  bytes.reserve(sizeof(std::string));
  const std::span<const std::byte> kept = std::as_bytes(std::span(bytes));
  request.converted.push_back(std::move(bytes));
  return kept;
}

Result<std::span<const std::byte>> contents_bytes(const InferInput& input, GrpcRequest& request) {
  const InferTensorContents& contents = input.contents();
  const std::optional<DataType> type = parse_data_type(input.datatype());
  if (!type) return bad_grpc(fmt::format("input '{}': unknown datatype '{}'", input.name(), input.datatype()));
  switch (*type) {
    case DataType::kBool: return view_of<uint8_t>(contents.bool_contents());
    case DataType::kInt32: return view_of<int32_t>(contents.int_contents());
    case DataType::kInt64: return view_of<int64_t>(contents.int64_contents());
    case DataType::kUint32: return view_of<uint32_t>(contents.uint_contents());
    case DataType::kUint64: return view_of<uint64_t>(contents.uint64_contents());
    case DataType::kFloat32: return view_of<float>(contents.fp32_contents());
    case DataType::kFloat64: return view_of<double>(contents.fp64_contents());
    case DataType::kFloat16:
    case DataType::kBfloat16:
      return bad_grpc(fmt::format("input '{}': {} has no typed contents; send it in raw_input_contents", input.name(),
                                  input.datatype()));
    default: break;
  }
  std::string bytes;
  if (!narrow_as(*type, contents, bytes))
    return bad_grpc(
        fmt::format("input '{}': 'contents' holds a number that is not within {}", input.name(), input.datatype()));
  return keep(std::move(bytes), request);
}

// ---- Parameters

ParameterValue value_of(const InferParameter& parameter) {
  switch (parameter.parameter_choice_case()) {
    case InferParameter::kBoolParam: return parameter.bool_param();
    case InferParameter::kInt64Param: return int64_t{parameter.int64_param()};
    case InferParameter::kUint64Param: return uint64_t{parameter.uint64_param()};
    case InferParameter::kDoubleParam: return parameter.double_param();
    case InferParameter::kStringParam: return std::string_view(parameter.string_param());
    case InferParameter::PARAMETER_CHOICE_NOT_SET: break;
  }
  return std::monostate();
}

Status read_parameters(const inference::ModelInferRequest& message, GrpcRequest& request) {
  for (const auto& [name, parameter] : message.parameters()) {
    if (name == "triton_enable_empty_final_response") {
      if (!parameter.has_bool_param()) return bad_grpc(fmt::format("parameter '{}' must be true or false", name));
      request.marks_final_response = parameter.bool_param();
    } else if (name == kUnorderedParameter) {
      if (!parameter.has_bool_param()) return bad_grpc(fmt::format("parameter '{}' must be true or false", name));
      request.unordered = parameter.bool_param();
    } else {
      FOLIOT_RETURN_IF_ERROR(read_request_parameter(name, value_of(parameter), request.parameters));
    }
  }
  return request.parameters.check();
}

Status read_inputs(const inference::ModelInferRequest& message, GrpcRequest& request) {
  const int raw = message.raw_input_contents_size();
  if (raw != 0 && raw != message.inputs_size())
    return bad_grpc(fmt::format("raw_input_contents has {} entries for {} inputs; it needs one for each, or none", raw,
                                message.inputs_size()));
  request.query.inputs.reserve(static_cast<size_t>(message.inputs_size()));
  for (int i = 0; i < message.inputs_size(); ++i) {
    const InferInput& input = message.inputs(i);
    ContentType content_type = ContentType::kNone;
    for (const auto& [name, parameter] : input.parameters()) {
      if (name == kContentTypeParameter) {
        content_type = parse_content_type(parameter.string_param());
        continue;
      }
      FOLIOT_RETURN_IF_ERROR(read_input_parameter(input.name(), name, request.parameters.unknown));
    }
    TensorView view{.name = input.name(),
                    .datatype = input.datatype(),
                    .shape = Shape(input.shape().begin(), input.shape().end()),
                    .bytes = {}};
    if (raw > 0) {
      if (input.contents().ByteSizeLong() > 0) {
        return bad_grpc(fmt::format("input '{}' has 'contents', and raw_input_contents is there, too; send one of them",
                                    input.name()));
      }
      view.bytes = std::as_bytes(std::span(message.raw_input_contents(i)));
    } else {
      FOLIOT_ASSIGN_OR_RETURN(view.bytes, contents_bytes(input, request));
    }
    if (content_type == ContentType::kBase64 && view.datatype == to_string(DataType::kBytes)) {
      view.bytes = keep(decode_base64_strings(view.bytes), request);
    }
    request.query.inputs.push_back(std::move(view));
  }
  return Status::ok_status();
}

Status read_outputs(const inference::ModelInferRequest& message, GrpcRequest& request) {
  for (const InferOutput& output : message.outputs()) {
    ContentType& content_type = request.output_types.emplace_back(ContentType::kNone);
    for (const auto& [name, parameter] : output.parameters()) {
      if (name == kContentTypeParameter) {
        content_type = parse_content_type(parameter.string_param());
        continue;
      }
      FOLIOT_RETURN_IF_ERROR(
          read_output_parameter(output.name(), name, value_of(parameter), request.parameters.unknown));
    }
    request.query.outputs.emplace_back(output.name());
  }
  return Status::ok_status();
}

// ---- Descriptions

inference::DataType config_data_type(DataType type) {
  inference::DataType parsed = inference::TYPE_INVALID;
  FOLIOT_CHECK(inference::DataType_Parse(config_type(type), &parsed));
  return parsed;
}

void encode(const DurationCount& duration, inference::StatisticDuration& message) {
  message.set_count(duration.count);
  message.set_ns(duration.nanoseconds);
}

}  // namespace

Result<GrpcRequest> decode_grpc_request(const inference::ModelInferRequest& message) {
  GrpcRequest request;
  request.query.id = message.id();
  FOLIOT_RETURN_IF_ERROR(read_parameters(message, request));
  FOLIOT_RETURN_IF_ERROR(read_inputs(message, request));
  FOLIOT_RETURN_IF_ERROR(read_outputs(message, request));
  return request;
}

void encode_number(RequestId number, inference::ModelInferResponse& message) {
  if (number == RequestId()) return;
  (*message.mutable_parameters())[std::string(kRequestParameter)].set_string_param(std::to_string(number.value()));
}

void encode_grpc_response(Answer& answer, const GrpcRequest& request, inference::ModelInferResponse& message) {
  message.set_model_name(std::string(answer.name()));
  message.set_model_version(std::string(answer.version()));
  message.set_id(std::string(answer.id()));
  encode_number(answer.number(), message);
  for (const AnswerParameter& parameter : answer.parameters()) {
    inference::InferParameter& to = (*message.mutable_parameters())[std::string(parameter.name)];
    if (const auto* text = std::get_if<std::string>(&parameter.value)) to.set_string_param(*text);
    if (const auto* flag = std::get_if<bool>(&parameter.value)) to.set_bool_param(*flag);
    if (const auto* whole = std::get_if<int64_t>(&parameter.value)) to.set_int64_param(*whole);
    if (const auto* number = std::get_if<double>(&parameter.value)) to.set_double_param(*number);
  }
  if (request.marks_final_response) (*message.mutable_parameters())["triton_final_response"].set_bool_param(true);
  for (uint32_t i = 0; i < answer.output_count(); ++i) {
    const TensorSpec& spec = answer.output_spec(i);
    auto* output = message.add_outputs();
    output->set_name(spec.name);
    output->set_datatype(std::string(to_string(spec.type)));
    for (int64_t extent : answer.output_shape(i)) output->add_shape(extent);
    if (answer.output_is_padded(i)) (*output->mutable_parameters())["padded"].set_bool_param(true);
    const ContentType asked = i < request.output_types.size() ? request.output_types[i] : ContentType::kNone;
    if (const std::string_view content_type = content_type_of(spec, asked); !content_type.empty()) {
      (*output->mutable_parameters())[std::string(kContentTypeParameter)].set_string_param(std::string(content_type));
    }
    std::string bytes = answer.take_output(i);
    if (is_base64(spec, asked)) bytes = encode_base64_strings(std::as_bytes(std::span(bytes)));
    message.add_raw_output_contents(std::move(bytes));
  }
}

void encode_metadata(const ModelInfo& model, const std::vector<std::shared_ptr<const ModelInfo>>& all,
                     inference::ModelMetadataResponse& message) {
  message.set_name(std::string(client_name(model.name)));
  for (const auto& each : all) message.add_versions(each->version);
  message.set_platform(std::string(platform_of(model)));
  const auto encode_tensor = [&](const TensorSpec& spec, auto* tensor) {
    tensor->set_name(spec.name);
    tensor->set_datatype(std::string(to_string(spec.type)));
    for (int64_t extent : metadata_shape(model, spec)) tensor->add_shape(extent);
  };
  for (const TensorSpec& spec : model.inputs) encode_tensor(spec, message.add_inputs());
  for (const TensorSpec& spec : model.outputs) encode_tensor(spec, message.add_outputs());
}

void encode_config(const ModelInfo& model, inference::ModelConfig& message) {
  message.set_name(std::string(client_name(model.name)));
  message.set_platform(std::string(platform_of(model)));
  message.set_backend(std::string(kServerName));
  message.set_max_batch_size(static_cast<int32_t>(max_batch_size(model)));
  const auto encode_tensor = [&](const TensorSpec& spec, auto* tensor) {
    tensor->set_name(spec.name);
    tensor->set_data_type(config_data_type(spec.type));
    for (int64_t extent : spec.shape) tensor->add_dims(extent);
  };
  for (const TensorSpec& spec : model.inputs) encode_tensor(spec, message.add_input());
  for (const TensorSpec& spec : model.outputs) encode_tensor(spec, message.add_output());
  for (const auto& [name, value] : config_parameters(model)) {
    (*message.mutable_parameters())[name].set_string_value(value);
  }
  if (!model.batching) return;
  for (uint32_t size : model.batch_sizes())
    message.mutable_dynamic_batching()->add_preferred_batch_size(static_cast<int32_t>(size));
}

void encode_statistics(const ModelStatistics& statistics, inference::ModelStatistics& message) {
  message.set_name(statistics.name);
  message.set_version(statistics.version);
  message.set_last_inference(statistics.last_inference_milliseconds);
  message.set_inference_count(statistics.inference_count);
  message.set_execution_count(statistics.execution_count);
  auto& stats = *message.mutable_inference_stats();
  encode(statistics.success, *stats.mutable_success());
  encode(statistics.fail, *stats.mutable_fail());
  encode(statistics.queue, *stats.mutable_queue());
  encode(statistics.compute_input, *stats.mutable_compute_input());
  encode(statistics.compute_infer, *stats.mutable_compute_infer());
  encode(statistics.compute_output, *stats.mutable_compute_output());
  encode(statistics.cache_hit, *stats.mutable_cache_hit());
  encode(statistics.cache_miss, *stats.mutable_cache_miss());
  for (const BatchStatistics& batch : statistics.batches) {
    auto* entry = message.add_batch_stats();
    entry->set_batch_size(batch.batch_size);
    encode(batch.compute_input, *entry->mutable_compute_input());
    encode(batch.compute_infer, *entry->mutable_compute_infer());
    encode(batch.compute_output, *entry->mutable_compute_output());
  }
}

}  // namespace foliot
