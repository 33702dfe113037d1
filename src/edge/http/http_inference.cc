#include "edge/http/http_inference.h"

#include <fmt/format.h>

#include <iterator>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include "edge/http/deflate.h"
#include "edge/http/http_responses.h"
#include "edge/requests/json_text.h"
#include "edge/requests/server_info.h"

namespace foliot {
namespace {

// Compressing a larger answer would hold up the others of its thread for longer than writing it does.
constexpr size_t kCompressedBytesMax = 256 << 10;
// Of outputs, written as text, or copied, within a millisecond, and so by the thread that answers.
constexpr uint64_t kWrittenHereBytesMax = 32 << 10;
constexpr uint64_t kCopiedHereBytesMax = 512 << 10;

void add_number(const Answer& answer, HttpResponse& response) {
  if (answer.number() == RequestId()) return;
  response.headers.emplace_back(kRequestHeader, std::to_string(answer.number().value()));
}

void append_parameters(const Answer& answer, std::string& json, HttpResponse& response) {
  std::vector<AnswerParameter> parameters = answer.parameters();
  if (answer.number() != RequestId()) {
    add_number(answer, response);
    parameters.insert(parameters.begin(), {kRequestParameter, std::to_string(answer.number().value())});
  }
  if (parameters.empty()) return;
  json += ",\"parameters\":{";
  for (const AnswerParameter& parameter : parameters) {
    if (json.back() != '{') json += ',';
    append_json_string(json, parameter.name);
    json += ':';
    if (const auto* text = std::get_if<std::string>(&parameter.value)) append_json_string(json, *text);
    if (const auto* flag = std::get_if<bool>(&parameter.value)) json += *flag ? "true" : "false";
    if (const auto* whole = std::get_if<int64_t>(&parameter.value)) json += std::to_string(*whole);
    if (const auto* number = std::get_if<double>(&parameter.value)) {
      fmt::format_to(std::back_inserter(json), "{}", *number);
    }
  }
  json += '}';
}

void append_output_parameters(const TensorSpec& spec, ContentType asked, bool is_padded,
                              std::optional<size_t> binary_bytes, std::string& json) {
  const std::string_view content_type = content_type_of(spec, asked);
  if (!binary_bytes && !is_padded && content_type.empty()) return;
  json += ",\"parameters\":{";
  if (binary_bytes) fmt::format_to(std::back_inserter(json), "\"binary_data_size\":{}", *binary_bytes);
  const auto separate = [&json] {
    if (json.back() != '{') json += ',';
  };
  if (is_padded) {
    separate();
    json += "\"padded\":true";
  }
  if (!content_type.empty()) {
    separate();
    fmt::format_to(std::back_inserter(json), "\"{}\":", kContentTypeParameter);
    append_json_string(json, content_type);
  }
  json += '}';
}

// An output whose rows are written one by one.
struct OutputRows {
  TensorSpec spec;
  std::string bytes;
  Shape shape;  // of one row
  std::span<const std::byte> rest;
};

}  // namespace

std::optional<CallError> HttpInference::start(const std::string& model, const std::string& version,
                                              std::shared_ptr<Tenant> tenant, Mailbox& mailbox) {
  Query& query = request_.query;
  query.owner = exchange_.share_body(std::move(request_.converted));  // devices may read it longer than the call lasts
  query.name = model;
  const Result<std::string_view> asked = request_.parameters.version_or_label(version);
  if (!asked.ok()) return call_error(asked.status());
  query.version = *asked;
  query.split_key = request_.parameters.split_key;
  query.arrival = exchange_.arrival();
  query.deadline = request_.parameters.deadline(query.arrival);
  query.deadline_origin = DeadlineOrigin::kTimeout;
  query.request_class = request_.parameters.request_class;
  query.context = request_.parameters.context;
  query.traceparent = exchange_.header("traceparent");
  query.accuracy = request_.parameters.accuracy;
  query.cost = request_.parameters.cost;
  Inference::Started started = inference_.start(query, {std::move(tenant), mailbox, *this});
  if (auto* error = std::get_if<CallError>(&started)) return std::move(*error);
  call_ = std::get<CallId>(started);
  return std::nullopt;
}

void HttpInference::on_client_gone() {
  if (answer_ == nullptr) inference_.cancel(call_);
}

void HttpInference::on_answer(CallId /*call*/, std::unique_ptr<Answer> answer) {
  answer_ = std::move(answer);
  if (!answer_->served()) return respond({});
  outputs_.resize(answer_->output_count());
  for (uint32_t i = 0; i < outputs_.size(); ++i) {
    if (answer_->output_spec(i).type == DataType::kBytes) outputs_[i] = answer_->take_output(i);
  }
  if (!is_long_to_write()) return respond(written());
  const auto response = std::make_shared<HttpResponse>();
  exchange_.run_aside([this, response] { *response = written(); }, [this, response] { respond(std::move(*response)); });
}

bool HttpInference::is_long_to_write() const {
  uint64_t text_bytes = 0, copied_bytes = 0;
  for (uint32_t i = 0; i < outputs_.size(); ++i) {
    const DataType type = answer_->output_spec(i).type;
    const uint64_t bytes = type == DataType::kBytes ? outputs_[i].size() : byte_size(type, answer_->output_shape(i));
    (is_binary(i) ? copied_bytes : text_bytes) += bytes;
  }
  return text_bytes > kWrittenHereBytesMax || copied_bytes > kCopiedHereBytesMax;
}

HttpResponse HttpInference::written() {
  for (uint32_t i = 0; i < outputs_.size(); ++i) {
    if (answer_->output_spec(i).type != DataType::kBytes) outputs_[i] = answer_->take_output(i);
  }
  HttpResponse response = table_ ? predictions_of(*answer_) : response_of(*answer_);
  compress_if_wanted(response);
  return response;
}

void HttpInference::respond(HttpResponse response) {
  answer_->settle();  // now that nothing is left to do but to write it
  if (!answer_->served()) response = error_response(answer_->error());
  exchange_.respond(std::move(response));
}

void HttpInference::compress_if_wanted(HttpResponse& response) const {
  size_t bytes = 0;
  for (const std::string& piece : response.body) bytes += piece.size();
  if (bytes <= kCompressedBytesMax) compress(response, preferred_encoding(exchange_.header("Accept-Encoding")));
}

bool HttpInference::is_binary(uint32_t output) const {
  return request_.output_is_binary.empty() ? request_.binary_by_default : request_.output_is_binary[output];
}

HttpResponse HttpInference::response_of(const Answer& answer) {
  HttpResponse response;
  response.body.emplace_back();
  std::string json = "{";
  if (!answer.id().empty()) {
    json += "\"id\":";
    append_json_string(json, answer.id());
    json += ',';
  }
  json += "\"model_name\":";
  append_json_string(json, answer.name());
  json += ",\"model_version\":";
  append_json_string(json, answer.version());
  append_parameters(answer, json, response);
  json += ",\"outputs\":[";
  for (uint32_t i = 0; i < answer.output_count(); ++i) {
    if (i > 0) json += ',';
    const Status written = append_output(answer, i, json, response.body);
    if (!written.ok()) return error_response(written);
  }
  json += "]}";
  if (response.body.size() > 1) {
    response.content_type = "application/octet-stream";
    response.headers.emplace_back(kJsonBytesHeader, std::to_string(json.size()));
  }
  response.body.front() = std::move(json);
  return response;
}

Status HttpInference::append_output(const Answer& answer, uint32_t i, std::string& json,
                                    std::vector<std::string>& body) {
  const TensorSpec& spec = answer.output_spec(i);
  std::string bytes = std::move(outputs_[i]);
  json += "{\"name\":";
  append_json_string(json, spec.name);
  fmt::format_to(std::back_inserter(json), ",\"datatype\":\"{}\",\"shape\":", to_string(spec.type));
  append_json_shape(json, answer.output_shape(i));
  const ContentType asked = i < request_.output_types.size() ? request_.output_types[i] : ContentType::kNone;
  if (is_base64(spec, asked)) bytes = encode_base64_strings(std::as_bytes(std::span(bytes)));
  append_output_parameters(spec, asked, answer.output_is_padded(i),
                           is_binary(i) ? std::optional(bytes.size()) : std::nullopt, json);
  if (is_binary(i)) {
    json += '}';
    body.push_back(std::move(bytes));
    return Status::ok_status();
  }
  json += ",\"data\":";
  const Status written = append_json_elements(json, spec.type, std::as_bytes(std::span(bytes)));
  if (!written.ok()) return written.with_context(fmt::format("output '{}'", spec.name));
  json += '}';
  return Status::ok_status();
}

HttpResponse HttpInference::predictions_of(const Answer& answer) {
  HttpResponse response;
  add_number(answer, response);
  std::vector<OutputRows> outputs(answer.output_count());
  const bool batching = request_.model->batching;
  int64_t rows = 1;
  for (uint32_t i = 0; i < answer.output_count(); ++i) {
    OutputRows& output = outputs[i];
    output = {answer.output_spec(i), std::move(outputs_[i]), answer.output_shape(i), {}};
    output.rest = std::as_bytes(std::span(output.bytes));
    if (!batching) continue;
    rows = output.shape.front();
    output.shape.erase(output.shape.begin());
    // MLServer's outputs of one number a row are [rows, 1], and the same number in a table.
    if (!content_type_of(output.spec, ContentType::kNone).empty() && output.shape == Shape{1}) output.shape.clear();
  }
  // KServe's servers write null, and MLflow's the bare name.
  const NotFinite not_finite = table_ == TableForm::kV1 ? NotFinite::kNull : NotFinite::kNamed;
  std::string json = "{\"predictions\":[";
  for (int64_t row = 0; row < rows; ++row) {
    if (row > 0) json += ',';
    if (outputs.size() > 1) json += '{';
    for (OutputRows& output : outputs) {
      if (outputs.size() > 1) {
        if (json.back() != '{') json += ',';
        append_json_string(json, output.spec.name);
        json += ':';
      }
      const Status written = append_json_tensor(json, output.spec.type, output.shape, not_finite, output.rest);
      if (!written.ok()) return error_response(written.with_context(fmt::format("output '{}'", output.spec.name)));
    }
    if (outputs.size() > 1) json += '}';
  }
  json += "]}";
  response.body.push_back(std::move(json));
  return response;
}

}  // namespace foliot
