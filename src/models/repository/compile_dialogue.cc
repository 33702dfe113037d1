#include "models/repository/compile_dialogue.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace foliot {
namespace {

using Json = nlohmann::json;

constexpr size_t kTextBytesMax = 4096;  // of a step or a message

Json to_json(const CompileStep& step) { return {{"step", step.step}, {"share", step.share}}; }
Json to_json(const CompileUnconfined& unconfined) { return {{"unconfined", unconfined.what}}; }
Json to_json(const CompileEnd& end) {
  return {{"end", static_cast<int>(end.status.code())}, {"message", end.status.message()}};
}

Json to_json(const DeclaredTensor& tensor) {
  Json json{{"name", tensor.name}, {"is_output", tensor.is_output}, {"where", tensor.where}};
  if (tensor.type) json["type"] = to_string(*tensor.type);
  if (tensor.dimensions) json["dimensions"] = *tensor.dimensions;
  return json;
}

// Throws Json::exception.
DeclaredTensor tensor_of(const Json& json) {
  DeclaredTensor tensor{.name = json.at("name").get<std::string>(),
                        .is_output = json.at("is_output").get<bool>(),
                        .type = {},
                        .dimensions = {},
                        .where = json.at("where").get<std::string>()};
  if (json.contains("type")) tensor.type = parse_data_type(json.at("type").get<std::string>());
  if (json.contains("dimensions")) tensor.dimensions = json.at("dimensions").get<std::vector<int64_t>>();
  return tensor;
}

std::string text_of(const Json& json) {
  std::string text = json.get<std::string>().substr(0, kTextBytesMax);
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  return text;
}

// Throws Json::exception if the line is not one of ours.
CompileLine from_json(const Json& json) {
  if (json.contains("step")) {
    return CompileStep{text_of(json.at("step")), std::clamp(json.at("share").get<double>(), 0.0, 1.0)};
  }
  if (json.contains("unconfined")) return CompileUnconfined{text_of(json.at("unconfined"))};
  const int code = json.at("end").get<int>();
  const bool known = code >= 0 && code <= static_cast<int>(StatusCode::kInternal);
  return CompileEnd{{known ? static_cast<StatusCode>(code) : StatusCode::kInternal, text_of(json.at("message"))}};
}

}  // namespace

// CBOR, since a path may be any bytes.
std::string encode_request(const CompileRequest& request) {
  const CompileOptions& options = request.options;
  Json json{{"model", request.model.string()},
            {"batch_sizes", options.batch_sizes},
            {"buckets", options.buckets},
            {"batch_dimensions", options.batch_dimensions},
            {"precision", to_string(options.precision)},
            {"page_bytes", options.page_bytes},
            {"profile_runs", options.profile_runs},
            {"workspace_bytes_max", options.workspace_bytes_max},
            {"first_size_only", options.first_size_only},
            {"owns_folder", options.owns_folder},
            {"declared", Json::array()},
            {"threads", request.threads},
            {"gpu", request.gpu},
            {"share", request.share},
            {"memory_bytes", request.memory_bytes},
            {"cpu_time_ns", request.cpu_time.nanoseconds()}};
  for (const DeclaredTensor& tensor : options.declared) json["declared"].push_back(to_json(tensor));
  std::string bytes;
  Json::to_cbor(json, bytes);
  return bytes;
}

Result<CompileRequest> decode_request(std::string_view bytes) try {
  const Json json = Json::from_cbor(bytes);
  CompileRequest request;
  CompileOptions& options = request.options;
  request.model = json.at("model").get<std::string>();
  json.at("batch_sizes").get_to(options.batch_sizes);
  json.at("buckets").get_to(options.buckets);
  json.at("batch_dimensions").get_to(options.batch_dimensions);
  const auto precision = parse_precision(json.at("precision").get<std::string>());
  if (!precision) return Status::invalid_argument("not a request to compile: no such precision");
  options.precision = *precision;
  json.at("page_bytes").get_to(options.page_bytes);
  json.at("profile_runs").get_to(options.profile_runs);
  json.at("workspace_bytes_max").get_to(options.workspace_bytes_max);
  json.at("first_size_only").get_to(options.first_size_only);
  json.at("owns_folder").get_to(options.owns_folder);
  for (const Json& tensor : json.at("declared")) options.declared.push_back(tensor_of(tensor));
  json.at("threads").get_to(request.threads);
  json.at("gpu").get_to(request.gpu);
  json.at("share").get_to(request.share);
  if (request.share > CpuShare::kSmall) return Status::invalid_argument("not a request to compile: no such share");
  json.at("memory_bytes").get_to(request.memory_bytes);
  request.cpu_time = Duration::nanoseconds(json.at("cpu_time_ns").get<int64_t>());
  return request;
} catch (const Json::exception& error) {
  return Status::invalid_argument(std::string("not a request to compile: ") + error.what());
}

std::string encode_line(const CompileLine& line) {
  const Json json = std::visit([](const auto& said) { return to_json(said); }, line);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<CompileLine> decode_line(std::string_view line) try {
  return from_json(Json::parse(line));
} catch (const Json::exception&) {
  return Status::invalid_argument("not a line of a compiling process");
}

}  // namespace foliot
