#include "edge/http/http_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "answer/inference/call_error.h"
#include "answer/inference/foreign_clients.h"
#include "edge/http/http_bodies.h"
#include "edge/http/http_inference.h"
#include "edge/http/http_jobs.h"
#include "edge/http/http_personal.h"
#include "edge/http/http_repository.h"
#include "edge/http/http_responses.h"
#include "edge/http/http_tables.h"
#include "edge/requests/expected_answer.h"
#include "edge/requests/json_feedback.h"
#include "edge/requests/json_text.h"
#include "edge/requests/server_info.h"
#include "foundation/json/bounded_json.h"

namespace foliot {
namespace {

using Json = nlohmann::ordered_json;

// As much as is likely to have come with the header.
constexpr uint64_t kSmallBodyBytes = 16 << 10;
// Of what is not an inference, feedback or a call of a personal model: those name a few settings.
constexpr uint64_t kSettingsBytesMax = JsonBounds().bytes_max;

// ---- Responses

HttpResponse json_response(const Json& json) {
  return foliot::json_response(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

HttpResponse ready_response(bool ready, Json about = Json::object()) {
  about["ready"] = ready;  // KServe's clients read it; others go by the status
  HttpResponse response = json_response(about);
  response.status = ready ? 200 : 503;
  if (!ready) response.headers.emplace_back("Retry-After", "1");
  return response;
}

void respond_to_get(HttpExchange& exchange, const auto& make) {
  if (method_is(exchange, "GET")) exchange.respond(make());
}

// ---- Paths

std::optional<int> hexadecimal(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      const auto high = hexadecimal(text[i + 1]);
      const auto low = hexadecimal(text[i + 2]);
      if (high && low) {
        decoded += static_cast<char>(*high * 16 + *low);
        i += 2;
        continue;
      }
    }
    decoded += text[i];
  }
  return decoded;
}

std::vector<std::string> split_path(std::string_view target) {
  target = target.substr(0, target.find('?'));
  std::vector<std::string> parts;
  while (!target.empty()) {
    const size_t slash = target.find('/');
    if (slash != 0) parts.push_back(percent_decoded(target.substr(0, slash)));
    target.remove_prefix(slash == std::string_view::npos ? target.size() : slash + 1);
  }
  return parts;
}

bool is_health(const std::vector<std::string>& path) {
  return is_table_health(path) || (path.size() >= 2 && path[0] == "v2" && path[1] == "health");
}

// /v2/models/NAME[/versions/VERSION][/WHAT]
struct ModelPath {
  std::string name;
  std::string version;  // empty: none is named
  std::string what;
};

std::optional<ModelPath> model_path(const std::vector<std::string>& path) {
  if (path.size() < 3 || path[0] != "v2" || path[1] != "models") return std::nullopt;
  const bool versioned = path.size() >= 5 && path[3] == "versions";
  const size_t rest = versioned ? 5 : 3;
  if (path.size() > rest + 1) return std::nullopt;
  return ModelPath{path[2], versioned ? path[4] : "", path.size() > rest ? path[rest] : ""};
}

bool is_repository(const std::vector<std::string>& path) {
  return path.size() >= 2 && path[0] == "v2" && path[1] == "repository";
}

bool is_applications(const std::vector<std::string>& path) {
  return path.size() >= 2 && path[0] == "v2" && path[1] == "applications";
}

bool is_inference(const std::vector<std::string>& path) {
  const std::optional<ModelPath> model = model_path(path);
  return table_call_of(path) || (model && model->what == "infer");
}

bool is_feedback(const std::vector<std::string>& path) {
  return is_applications(path) && path.size() == 4 && path[3] == "feedback";
}

Scope scope_of(const std::vector<std::string>& path) {
  if (is_personal_path(path)) return scope_of_personal_path(path);
  if (is_applications(path)) return Scope::kFeedback;
  if (is_jobs_path(path)) return Scope::kJobs;
  return is_repository(path) ? Scope::kAdmin : Scope::kInfer;
}

// ---- Descriptions of models

Json tensors_json(const ModelInfo& model, const std::vector<TensorSpec>& specs) {
  Json tensors = Json::array();
  for (const TensorSpec& spec : specs)
    tensors.push_back(
        {{"name", spec.name}, {"datatype", to_string(spec.type)}, {"shape", metadata_shape(model, spec)}});
  return tensors;
}

using ModelInfos = std::vector<std::shared_ptr<const ModelInfo>>;

Json versions_json(const ModelInfos& all) {
  Json versions = Json::array();
  for (const auto& model : all) versions.push_back(model->version);
  return versions;
}

// `all`: its versions.
Json metadata_json(const ModelInfo& model, const ModelInfos& all) {
  return {{"name", client_name(model.name)},
          {"versions", versions_json(all)},
          {"platform", platform_of(model)},
          {"inputs", tensors_json(model, model.inputs)},
          {"outputs", tensors_json(model, model.outputs)}};
}

// A configuration has every field that Triton always writes, with its default where Foliot has nothing to say:
// clients read them without looking whether they are there.
Json config_inputs_json(const std::vector<TensorSpec>& specs) {
  Json tensors = Json::array();
  for (const TensorSpec& spec : specs) {
    tensors.push_back({{"name", spec.name},
                       {"data_type", config_type(spec.type)},
                       {"format", "FORMAT_NONE"},
                       {"dims", spec.shape},
                       {"is_shape_tensor", false},
                       {"allow_ragged_batch", false},
                       {"optional", false},
                       {"is_non_linear_format_io", false}});
  }
  return tensors;
}

Json config_outputs_json(const std::vector<TensorSpec>& specs) {
  Json tensors = Json::array();
  for (const TensorSpec& spec : specs) {
    tensors.push_back({{"name", spec.name},
                       {"data_type", config_type(spec.type)},
                       {"dims", spec.shape},
                       {"label_filename", ""},
                       {"is_shape_tensor", false},
                       {"is_non_linear_format_io", false}});
  }
  return tensors;
}

Json version_policy_json(const ModelInfos& all) {
  if (all.size() == 1) return {{"latest", {{"num_versions", 1}}}};
  return {{"specific", {{"versions", versions_json(all)}}}};
}

Json config_json(const ModelInfo& model, const ModelInfos& all) {
  Json config = {{"name", client_name(model.name)},
                 {"platform", platform_of(model)},
                 {"backend", kServerName},
                 {"runtime", ""},
                 {"version_policy", version_policy_json(all)},
                 {"max_batch_size", max_batch_size(model)},
                 {"input", config_inputs_json(model.inputs)},
                 {"output", config_outputs_json(model.outputs)},
                 {"batch_input", Json::array()},
                 {"batch_output", Json::array()},
                 {"optimization",
                  {{"priority", "PRIORITY_DEFAULT"}, {"gather_kernel_buffer_threshold", 0}, {"eager_batching", false}}},
                 {"instance_group", Json::array()},
                 {"default_model_filename", ""},
                 {"cc_model_filenames", Json::object()},
                 {"metric_tags", Json::object()},
                 {"parameters", Json::object()},
                 {"model_warmup", Json::array()}};
  if (model.batching) {
    config["dynamic_batching"] = {{"preferred_batch_size", model.batch_sizes()},
                                  {"max_queue_delay_microseconds", 0},
                                  {"preserve_ordering", false},
                                  {"priority_levels", 0},
                                  {"default_priority_level", 0},
                                  {"priority_queue_policy", Json::object()}};
  }
  for (const auto& [name, value] : config_parameters(model)) config["parameters"][name]["string_value"] = value;
  return config;
}

Json duration_json(const DurationCount& duration) { return {{"count", duration.count}, {"ns", duration.nanoseconds}}; }

Json statistics_json(const ModelStatistics& model) {
  Json batches = Json::array();
  for (const BatchStatistics& batch : model.batches)
    batches.push_back({{"batch_size", batch.batch_size},
                       {"compute_input", duration_json(batch.compute_input)},
                       {"compute_infer", duration_json(batch.compute_infer)},
                       {"compute_output", duration_json(batch.compute_output)}});
  // There is no response cache; clients expect its counters all the same.
  return {{"name", model.name},
          {"version", model.version},
          {"last_inference", model.last_inference_milliseconds},
          {"inference_count", model.inference_count},
          {"execution_count", model.execution_count},
          {"inference_stats",
           {{"success", duration_json(model.success)},
            {"fail", duration_json(model.fail)},
            {"queue", duration_json(model.queue)},
            {"compute_input", duration_json(model.compute_input)},
            {"compute_infer", duration_json(model.compute_infer)},
            {"compute_output", duration_json(model.compute_output)},
            {"cache_hit", duration_json(model.cache_hit)},
            {"cache_miss", duration_json(model.cache_miss)}}},
          {"batch_stats", batches}};
}

Json statistics_json(const std::vector<ModelStatistics>& models) {
  Json all = Json::array();
  for (const ModelStatistics& model : models) all.push_back(statistics_json(model));
  return {{"model_stats", all}};
}

// What a POST asks to be set; nothing for another method or without a body.
Result<nlohmann::json> wanted_settings(HttpExchange& exchange) {
  if (exchange.method() != "POST" || exchange.body().empty()) return nlohmann::json::object();
  FOLIOT_ASSIGN_OR_RETURN(nlohmann::json wanted, parse_bounded_json(exchange.body()));
  if (!wanted.is_object())
    return Status::invalid_argument("the body must be a JSON object with the settings to change");
  return wanted;
}

}  // namespace

HttpApi::HttpApi(HttpApiPart part, const ProtocolParts& parts, std::shared_ptr<Mailbox> mailbox)
    : part_(part), parts_(parts), mailbox_(std::move(mailbox)) {}

std::optional<HttpResponse> HttpApi::on_header(const HttpExchange& exchange) {
  const Path path = split_path(exchange.target());
  if (!parts_.gate.open() && !is_health(path)) {
    const auto error = parts_.gate.turn_away(exchange.header("Authorization"), scope_of(path), exchange.peer(),
                                             fmt::format("{} {}", exchange.method(), exchange.target()));
    if (error) return error_response(*error);
  }
  return refuse_large_body(exchange, path);
}

// A model that cannot answer is not worth reading a large body for. A small one is read,
// since the refusal of what was not read ends the connection.
std::optional<HttpResponse> HttpApi::refuse_large_body(const HttpExchange& exchange, const Path& path) const {
  if (part_ == HttpApiPart::kRepository || !is_inference(path) || exchange.method() != "POST") return std::nullopt;
  const std::string_view length = exchange.header("Content-Length");
  uint64_t bytes = 0;
  const auto [end, error] = std::from_chars(length.data(), length.data() + length.size(), bytes);
  const bool known = error == std::errc() && end == length.data() + length.size();
  if (known && bytes <= kSmallBodyBytes && exchange.header("Expect").empty()) return std::nullopt;
  std::string name, version;
  if (const std::optional<TableCall> table = table_call_of(path)) {
    Result<std::string> called = model_of(*table, parts_.names);
    if (!called.ok()) return error_response(called.status());
    name = std::move(called).value();
  } else {
    const ModelPath model = *model_path(path);
    name = model.name;
    version = model.version;
  }
  const Status status = parts_.names.find(name, version).status();
  if (status.ok()) return std::nullopt;
  return error_response(status);
}

uint64_t HttpApi::body_bytes_max(const HttpExchange& exchange) const {
  const Path path = split_path(exchange.target());
  if (is_inference(path) || is_personal_path(path)) return std::numeric_limits<uint64_t>::max();
  return is_applications(path) ? kFeedbackBytesMax : kSettingsBytesMax;
}

uint64_t HttpApi::parsed_bytes(HttpExchange& exchange) const {
  if (exchange.method() != "POST") return 0;
  const Path path = split_path(exchange.target());
  return is_inference(path) || is_feedback(path) || personal_method_of(path) ? text_bytes(exchange) : 0;
}

std::unique_ptr<HttpDecoded> HttpApi::decode(HttpExchange& exchange) const {
  const Path path = split_path(exchange.target());
  auto decoded = std::make_unique<HttpDecodedBody>();
  if (const std::optional<TableCall> table = table_call_of(path)) {
    decoded->inference = read_table(decoded->decoder, exchange, *table, parts_.names);
  } else if (is_inference(path)) {
    decoded->inference = read_inference(decoded->decoder, exchange);
  } else if (is_feedback(path)) {
    decoded->feedback = parse_feedback(exchange.body());
  } else {
    decoded->personal = read_personal_call(*personal_method_of(path), exchange);
  }
  return decoded;
}

std::string HttpApi::source(const HttpExchange& exchange) const {
  const std::shared_ptr<Tenant> tenant = parts_.gate.tenant_of(exchange.header("Authorization"));
  return tenant ? tenant->statistics().name : HttpHandler::source(exchange);
}

void HttpApi::handle(HttpExchange& exchange) {
  const Path path = split_path(exchange.target());
  const bool is_operators = is_repository(path) || is_jobs_path(path);
  const HttpApiPart wanted = is_operators ? HttpApiPart::kRepository : HttpApiPart::kInference;
  if (part_ != HttpApiPart::kAll && part_ != wanted && !is_health(path)) {
    return exchange.respond(
        error_response(Status::not_found(fmt::format("{} is served on another port", exchange.target()))));
  }
  if (route_tables(exchange, path)) return;
  const bool known =
      !path.empty() && path[0] == "v2" &&
      (route_server(exchange, path) || route_settings(exchange, path) || route_models(exchange, path) ||
       route_repository(exchange, path) || route_shared_memory(exchange, path) || route_applications(exchange, path) ||
       (is_personal_path(path) && serve_personal_path(exchange, path, parts_, mailbox_)) ||
       (is_jobs_path(path) && serve_jobs_path(exchange, path, parts_, mailbox_)));
  if (!known) exchange.respond(error_response(Status::not_found(fmt::format("no such path: {}", exchange.target()))));
}

// /v2 and /v2/health/...
bool HttpApi::route_server(HttpExchange& exchange, const Path& path) {
  if (path.size() == 1) {
    respond_to_get(exchange, [] {
      return json_response(Json{{"name", kServerName}, {"version", server_version()}, {"extensions", kExtensions}});
    });
    return true;
  }
  if (path.size() != 3 || path[1] != "health") return false;
  if (path[2] == "live") {
    respond_to_get(exchange, [] { return json_response(Json{{"live", true}}); });
    return true;
  }
  if (path[2] == "ready") {
    respond_to_get(exchange, [&] { return ready_response(parts_.names.ready()); });
    return true;
  }
  return false;
}

// The paths of other protocols (http_tables.h).
bool HttpApi::route_tables(HttpExchange& exchange, const Path& path) {
  const std::optional<TableCall> call = table_call_of(path);
  if (!call) return serve_table_path(exchange, path, parts_.names);
  if (!method_is(exchange, "POST")) return true;
  if (std::optional<HttpResponse> refusal = refuse_content_type(exchange, *call)) {
    exchange.respond(*std::move(refusal));
  } else {
    infer(exchange, call->model, "", call);
  }
  return true;
}

// /v2/models/stats, /v2/models/M[/versions/V][/what]
bool HttpApi::route_models(HttpExchange& exchange, const Path& path) {
  if (path.size() == 3 && path[1] == "models" && path[2] == "stats") {
    respond_to_get(exchange, [&] { return json_response(statistics_json(parts_.statistics.snapshot())); });
    return true;
  }
  const std::optional<ModelPath> model_of_path = model_path(path);
  if (!model_of_path) return false;
  const std::string& name = model_of_path->name;
  const std::string& version = model_of_path->version;
  const std::string& what = model_of_path->what;

  if (what == "infer") {
    if (method_is(exchange, "POST")) infer(exchange, name, version, std::nullopt);
    return true;
  }
  if (what != "" && what != "ready" && what != "config" && what != "stats") return false;
  respond_to_get(exchange, [&] {
    const auto model = parts_.names.find(name, version);
    if (what == "ready" && model.status().code() == StatusCode::kUnavailable) {
      return ready_response(false, {{"name", name}});
    }
    if (!model.ok()) return error_response(model.status());
    if (what == "ready") return ready_response(true, {{"name", name}});
    const Result<ModelInfos> all = parts_.names.find_all(name);
    if (!all.ok()) return error_response(all.status());
    if (what == "config") return json_response(config_json(**model, *all));
    if (what == "stats") {
      std::vector<ModelStatistics> statistics;
      for (const auto& each : version.empty() ? *all : ModelInfos{*model}) {
        statistics.push_back(parts_.statistics.of(*each)->snapshot());
      }
      return json_response(statistics_json(statistics));
    }
    return json_response(metadata_json(**model, *all));
  });
  return true;
}

// /v2/repository/index; of a model http_repository.h
bool HttpApi::route_repository(HttpExchange& exchange, const Path& path) {
  if (path.size() < 3 || path[1] != "repository") return false;
  if (path.size() == 3 && path[2] == "index") {
    if (!method_is(exchange, "POST")) return true;
    exchange.respond(index_response(exchange.body()));
    return true;
  }
  return path.size() == 5 && path[2] == "models" &&
         serve_repository_model(exchange, path[3], path[4], parts_, mailbox_);
}

// /v2/applications/A/feedback
bool HttpApi::route_applications(HttpExchange& exchange, const Path& path) {
  if (!is_feedback(path)) return false;
  if (method_is(exchange, "POST")) exchange.respond(take_feedback(exchange, path[2]));
  return true;
}

HttpResponse HttpApi::take_feedback(HttpExchange& exchange, const std::string& application) {
  const std::shared_ptr<HttpDecoded> aside = exchange.take_decoded();
  auto* const decoded = static_cast<HttpDecodedBody*>(aside.get());
  const Result<Feedback> feedback =
      decoded != nullptr ? std::move(decoded->feedback).value() : parse_feedback(exchange.body());
  if (!feedback.ok()) {
    charge_for_refused_body(parts_.gate, exchange);
    return error_response(feedback.status());
  }
  Observation observation = feedback->observation();
  observation.name = application;
  observation.tenant = parts_.gate.tenant_of(exchange.header("Authorization"));
  const Status status = parts_.inference.observe(observation);
  return status.ok() ? json_response(std::string("{}")) : error_response(status);
}

// /v2/{system,cuda}sharedmemory[/region/R]/{status,register,unregister}
bool HttpApi::route_shared_memory(HttpExchange& exchange, const Path& path) {
  if (path.size() < 3 || (path[1] != "systemsharedmemory" && path[1] != "cudasharedmemory")) return false;
  const bool region = path.size() == 5 && path[2] == "region";
  if (path.size() != 3 && !region) return false;
  const std::string& what = path.back();
  if (what == "status") {
    respond_to_get(exchange, [&] {
      if (region) return error_response(Status::not_found(fmt::format("no shared memory region '{}'", path[3])));
      return json_response(std::string("[]"));
    });
    return true;
  }
  if (what == "unregister") {
    // Nothing is ever registered, so that it always is as asked.
    if (method_is(exchange, "POST")) exchange.respond(HttpResponse{});
    return true;
  }
  if (what != "register" || !region) return false;
  if (method_is(exchange, "POST")) exchange.respond(error_response(shared_memory_not_supported()));
  return true;
}

// /v2/logging, and /v2[/models/M[/versions/V]]/trace/setting
bool HttpApi::route_settings(HttpExchange& exchange, const Path& path) {
  const bool log = path.size() == 2 && path[1] == "logging";
  const bool trace = path.size() >= 3 && path[path.size() - 2] == "trace" && path.back() == "setting";
  if (!log && !trace) return false;
  if (path.size() > 3) {
    const std::optional<ModelPath> model = model_path(Path(path.begin(), path.end() - 2));
    if (!model || !model->what.empty()) return false;
    const Status status = parts_.names.find(model->name, model->version).status();
    if (!status.ok()) return exchange.respond(error_response(status)), true;
  }
  if (exchange.method() != "POST" && !method_is(exchange, "GET")) return true;
  exchange.respond(log ? log_settings_response(exchange) : trace_settings_response(exchange));
  return true;
}

HttpResponse HttpApi::log_settings_response(HttpExchange& exchange) const {
  const Result<nlohmann::json> wanted = wanted_settings(exchange);
  if (!wanted.ok()) return error_response(wanted.status());
  for (const auto& item : wanted->items()) {
    const nlohmann::json& value = item.value();
    LogSetting setting = value.is_string() ? value.get<std::string>() : shown_json(value);
    if (value.is_boolean()) setting = value.get<bool>();
    if (value.is_number_unsigned()) setting = value.get<uint64_t>();
    const Status status = check_log_setting(parts_.log_levels, item.key(), setting);
    if (!status.ok()) return error_response(status);
  }
  Json settings;
  for (const auto& [name, setting] : log_settings(parts_.log_levels))
    std::visit([&, &key = name](const auto& value) { settings[key] = value; }, setting);
  return json_response(settings);
}

HttpResponse HttpApi::trace_settings_response(HttpExchange& exchange) const {
  const Result<nlohmann::json> wanted = wanted_settings(exchange);
  if (!wanted.ok()) return error_response(wanted.status());
  for (const auto& item : wanted->items()) {
    std::vector<std::string> values;
    const auto add = [&](const nlohmann::json& value) {
      values.push_back(value.is_string() ? value.get<std::string>() : shown_json(value));
    };
    if (item.value().is_array()) {
      for (const nlohmann::json& value : item.value()) add(value);
    } else if (!item.value().is_null()) {
      add(item.value());
    }
    if (const Status status = check_trace_setting(parts_.traces, item.key(), values); !status.ok())
      return error_response(status);
  }
  Json settings;
  for (const auto& [name, values] : trace_settings(parts_.traces)) {
    // Of the levels there may be several.
    if (name == "trace_level") {
      settings[name] = values;
    } else {
      settings[name] = values.front();
    }
  }
  return json_response(settings);
}

void HttpApi::infer(HttpExchange& exchange, const std::string& model, const std::string& version,
                    const std::optional<TableCall>& table) {
  const std::shared_ptr<HttpDecoded> aside = exchange.take_decoded();
  auto* const decoded = static_cast<HttpDecodedBody*>(aside.get());
  Result<JsonRequest> request = decoded != nullptr ? std::move(decoded->inference).value()
                                : table            ? read_table(decoder_, exchange, *table, parts_.names)
                                                   : read_inference(decoder_, exchange);
  if (!request.ok()) {
    charge_for_refused_body(parts_.gate, exchange);
    return exchange.respond(error_response(request.status()));
  }
  request->query.body_bytes = exchange.body().size();
  // Its rows were read for the highest version; which one answers is for the call to choose.
  const std::string name(table ? client_name(request->model->name) : model);
  if (request->has_nulls) {
    const auto found = parts_.names.find(name, version);
    if (found.ok() && !takes_other_forms(**found)) {
      charge_for_refused_body(parts_.gate, exchange);
      return exchange.respond(error_response(Status::invalid_argument(
          fmt::format("model '{}' takes no null among numbers; send NaN for one that is missing", name))));
    }
  }
  const std::vector<TensorView>& inputs = request->query.inputs;
  const bool has_shape = !inputs.empty() && !inputs.front().shape.empty();
  const int64_t first_extent = has_shape ? inputs.front().shape.front() : 1;
  const auto asked_for = [&outputs = request->query.outputs](std::string_view output) {
    return outputs.empty() || std::ranges::find(outputs, output) != outputs.end();
  };
  const uint64_t answer_bytes = expected_answer_bytes(parts_.names, name, version, first_extent, asked_for);
  if (auto refusal = exchange.expect_answer(answer_bytes)) {
    charge_for_refused_body(parts_.gate, exchange);
    return exchange.respond(*std::move(refusal));
  }

  parts_.unknown_names.note(request->parameters.unknown);

  std::optional<TableForm> form;
  if (table) form = table->form;
  auto inference = std::make_unique<HttpInference>(parts_.inference, exchange, std::move(request).value(), form);
  std::shared_ptr<Tenant> tenant = parts_.gate.tenant_of(exchange.header("Authorization"));
  if (const auto error = inference->start(name, version, std::move(tenant), *mailbox_)) {
    return exchange.respond(error_response(*error));
  }
  exchange.keep(std::move(inference));
}

HttpResponse HttpApi::index_response(std::string_view body) const {
  const Result<nlohmann::json> asked = parse_bounded_json(body);
  if (!asked.ok()) return error_response(asked.status());
  const bool ready_only = asked->is_object() && asked->contains("ready") && asked->at("ready") == true;
  return json_response(index_json(ready_only));
}

std::string HttpApi::index_json(bool ready_only) const {
  Json models = Json::array();
  for (const auto& [name, entry] : parts_.names.snapshot()) {
    // Of several versions each has an entry of its own.
    if (entry->versions != nullptr || (ready_only && entry->state != ModelState::kReady)) continue;
    models.push_back({{"name", client_name(name)},
                      {"version", entry->version},
                      {"state", to_string(entry->state)},
                      {"reason", entry->reason}});
  }
  return models.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace foliot
