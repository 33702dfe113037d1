#include "models/foreign/mlserver_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <utility>

#include "foundation/config/code_file.h"
#include "foundation/core/action.h"
#include "foundation/json/bounded_json.h"

namespace foliot {
namespace {

using Json = nlohmann::json;

struct Runtime {
  std::string_view module;  // of `implementation`
  std::string_view remedy;
};

constexpr std::array<Runtime, 5> kRuntimes{{
    {"mlserver_sklearn", "'uri' must be a file beside it that ends with .joblib, .pkl or .skops"},
    {"mlserver_xgboost", "'uri' must be a file beside it that ends with .json, .ubj or .bst"},
    {"mlserver_lightgbm", "'uri' must be a file beside it that ends with .bst or .txt"},
    {"mlserver_catboost", "'uri' must be a file beside it that ends with .cbm"},
    {"mlserver_mlflow", "'uri' must be a folder in it that has an MLmodel"},
}};

constexpr size_t kTensorsMax = 256;                        // inputs, and outputs
constexpr Duration kBatchTimeMax = Duration::seconds(10);  // as of model.toml's batch_delay

// Letters, digits and underscores, the first no underscore.
bool is_method_name(std::string_view name) {
  constexpr size_t kBytesMax = 64;
  return !name.empty() && name.size() <= kBytesMax && name.front() != '_' &&
         std::ranges::all_of(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; });
}

class MlserverReading {
 public:
  MlserverReading(std::string_view text, const Json& json, const std::string& file, ForeignNotes& notes,
                  ForeignSettings& to)
      : text_(text), json_(json), file_(file), notes_(notes), to_(to) {}

  Status run() {
    if (!json_.is_object()) return Status::invalid_argument(fmt::format("{}:1: must be an object, {{...}}", file_));
    if (const Json* const name = find(json_, "name")) {
      if (!name->is_string() || name->get_ref<const std::string&>().empty()) return wrong("name", *name, "a text");
      to_.name = {name->get<std::string>(), at("name")};
    }
    if (const Json* const cached = find(json_, "cache_enabled")) {
      if (!cached->is_boolean()) return wrong("cache_enabled", *cached, "true or false");
      to_.cache = {cached->get<bool>(), at("cache_enabled")};
    }
    FOLIOT_RETURN_IF_ERROR(read_parameters());
    FOLIOT_RETURN_IF_ERROR(read_implementation());
    FOLIOT_RETURN_IF_ERROR(read_batches());
    for (const bool is_output : {false, true}) FOLIOT_RETURN_IF_ERROR(read_tensors(is_output));
    note_others(json_, {"name", "implementation", "parameters", "max_batch_size", "max_batch_time", "inputs", "outputs",
                        "cache_enabled"});
    return Status();
  }

 private:
  static const Json* find(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found == object.end() || found->is_null() ? nullptr : &*found;
  }
  // Of the first place that has the key in quotes: the JSON library keeps no places.
  size_t line(const std::string& key) const {
    const size_t found = text_.find("\"" + key + "\"");
    return 1 + static_cast<size_t>(std::ranges::count(text_.substr(0, std::min(found, text_.size())), '\n'));
  }
  std::string at(const std::string& key) const { return fmt::format("{}:{}: {}", to_.file, line(key), key); }
  Status wrong(const std::string& key, const Json& value, std::string_view must) const {
    return Status::invalid_argument(
        fmt::format("{}:{}: '{}' must be {}, not {}", file_, line(key), key, must, shown_json(value)));
  }
  void note_others(const Json& object, const std::vector<std::string_view>& known) {
    for (const auto& [key, value] : object.items()) {
      if (std::ranges::find(known, key) != known.end()) continue;
      // To find a line takes a pass over the text.
      notes_.add(notes_.is_full() ? "" : fmt::format("{}:{}: {} is not read", to_.file, line(key), shown_json(key)));
    }
  }

  Status read_parameters() {
    const Json* const parameters = find(json_, "parameters");
    if (parameters == nullptr) return Status();
    if (!parameters->is_object()) return wrong("parameters", *parameters, "an object");
    if (const Json* const uri = find(*parameters, "uri")) FOLIOT_RETURN_IF_ERROR(read_uri(*uri));
    if (const Json* const version = find(*parameters, "version")) FOLIOT_RETURN_IF_ERROR(read_version(*version));
    // Of a request as a whole: each input says by itself what it is.
    if (const Json* const type = find(*parameters, "content_type")) {
      if (!type->is_string()) return wrong("content_type", *type, "a text");
    }
    if (const Json* const extra = find(*parameters, "extra")) FOLIOT_RETURN_IF_ERROR(read_extra(*extra));
    note_others(*parameters, {"uri", "version", "content_type", "extra"});
    return Status();
  }

  Status read_extra(const Json& extra) {
    if (!extra.is_object()) return wrong("extra", extra, "an object");
    if (const Json* const method = find(extra, "predict_fn")) {
      const bool is_text = method->is_string();
      if (is_text) to_.predict_fn = method->get<std::string>();
      if (!is_text || !is_method_name(to_.predict_fn)) return wrong("predict_fn", *method, "the name of a method");
    }
    note_others(extra, {"predict_fn"});
    return Status();
  }

  Status read_uri(const Json& value) {
    constexpr std::string_view kMust = "the path of a file in the folder of the model";
    if (!value.is_string()) return wrong("uri", value, kMust);
    const std::filesystem::path path = std::filesystem::path(value.get<std::string>()).lexically_normal();
    if (path.empty() || path.is_absolute() || *path.begin() == "..") return wrong("uri", value, kMust);
    uri_ = path.string();
    if (path.has_stem() && (path.extension() == ".onnx" || is_code_file(path))) to_.model_file = uri_;
    return Status();
  }

  Status read_version(const Json& value) {
    if (!value.is_string()) return wrong("version", value, "a text");
    const auto& version = value.get_ref<const std::string&>();
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(version.data(), version.data() + version.size(), number);
    if (error == std::errc() && end == version.data() + version.size() && version.front() != '0') {
      to_.version = version;
    } else {
      notes_.add(fmt::format("{}: {} is not read: versions are whole numbers, and a model beside the file has 1",
                             at("version"), shown_json(value)));
    }
    return Status();
  }

  Status read_implementation() {
    const Json* const value = find(json_, "implementation");
    if (value == nullptr) return Status();
    if (!value->is_string()) return wrong("implementation", *value, "a text");
    const std::string name = value->get<std::string>();
    to_.runtime = name.substr(0, name.find('.'));
    if (to_.runtime == "mlserver_mlflow" && to_.model_file.empty()) {
      to_.model_file = (std::filesystem::path(uri_) / kMlflowFile).lexically_normal().string();
    }
    const auto* const runtime = std::ranges::find(kRuntimes, to_.runtime, &Runtime::module);
    const std::string_view remedy = runtime == kRuntimes.end() ? "move its code to a model.py" : runtime->remedy;
    to_.otherwise = fmt::format("; {}: {} is a runtime of MLServer's: {} (docs/CONTAINERS.md)", at("implementation"),
                                shown_json(*value), remedy);
    return Status();
  }

  Status read_batches() {
    uint64_t max = 0;
    if (const Json* const value = find(json_, "max_batch_size")) {
      if (!value->is_number_unsigned()) return wrong("max_batch_size", *value, "a whole number from 0 on");
      max = value->get<uint64_t>();
    }
    // Otherwise MLServer does not batch, and takes requests of any size.
    if (max > 1) {
      to_.batch_sizes = {batch_sizes_up_to(static_cast<uint32_t>(std::min<uint64_t>(max, kCompiledBatchSizeMax))),
                         at("max_batch_size")};
      if (max > kCompiledBatchSizeMax) {
        notes_.add(
            fmt::format("{} is {}, and batches are of at most {}", at("max_batch_size"), max, kCompiledBatchSizeMax));
      }
    }
    const Json* const time = find(json_, "max_batch_time");
    if (time == nullptr) return Status();
    if (!time->is_number() || !(time->get<double>() >= 0) || time->get<double>() > kBatchTimeMax.to_seconds()) {
      return wrong("max_batch_time", *time, fmt::format("in seconds, from 0 to {:g}", kBatchTimeMax.to_seconds()));
    }
    const auto microseconds = static_cast<int64_t>(std::llround(time->get<double>() * 1e6));
    to_.batch_delay = {Duration::microseconds(microseconds), at("max_batch_time")};
    return Status();
  }

  Status read_tensors(bool is_output) {
    const std::string key = is_output ? "outputs" : "inputs";
    const Json* const tensors = find(json_, key.c_str());
    if (tensors == nullptr) return Status();
    if (!tensors->is_array()) return wrong(key, *tensors, "a list");
    if (tensors->size() > kTensorsMax) {
      return Status::invalid_argument(fmt::format("{}:{}: '{}' has {} entries, and at most {}", file_, line(key), key,
                                                  tensors->size(), kTensorsMax));
    }
    for (const Json& tensor : *tensors) {
      const Json* const name = tensor.is_object() ? find(tensor, "name") : nullptr;
      if (name == nullptr || !name->is_string()) return wrong(key, tensor, "a list of objects with a \"name\"");
      DeclaredTensor declared{.name = name->get<std::string>(),
                              .is_output = is_output,
                              .type = {},
                              .dimensions = {},
                              .where = fmt::format("{}:{}", to_.file, line(name->get<std::string>()))};
      if (const Json* const type = find(tensor, "datatype")) {
        if (type->is_string()) declared.type = parse_data_type(type->get<std::string>());
        if (!declared.type) return wrong("datatype", *type, "a datatype, such as \"FP32\"");
      }
      if (const Json* const shape = find(tensor, "shape")) FOLIOT_RETURN_IF_ERROR(read_shape(*shape, declared));
      if (const Json* const parameters = find(tensor, "parameters")) {
        FOLIOT_RETURN_IF_ERROR(read_content_type(*parameters));
      }
      note_others(tensor, {"name", "datatype", "shape", "parameters"});
      to_.tensors.push_back(std::move(declared));
    }
    return Status();
  }

  // A request says by itself what its tensors are, but that strings are base64.
  Status read_content_type(const Json& parameters) {
    if (!parameters.is_object()) return wrong("parameters", parameters, "an object");
    const Json* const type = find(parameters, "content_type");
    if (type != nullptr && !type->is_string()) return wrong("content_type", *type, "a name, such as \"np\"");
    if (type != nullptr && type->get_ref<const std::string&>() == "base64") {
      notes_.add(
          fmt::format("{}: \"base64\" is not read: requests name it as a parameter of the tensor", at("content_type")));
    }
    note_others(parameters, {"content_type"});
    return Status();
  }

  Status read_shape(const Json& shape, DeclaredTensor& to) const {
    constexpr std::string_view kMust = "a list of whole numbers, -1 for any";
    if (!shape.is_array()) return wrong("shape", shape, kMust);
    to.dimensions.emplace();
    for (const Json& extent : shape) {
      if (!extent.is_number_integer() || extent.get<int64_t>() < -1) return wrong("shape", shape, kMust);
      to.dimensions->push_back(extent.get<int64_t>());
    }
    return Status();
  }

  const std::string_view text_;
  const Json& json_;
  const std::string& file_;
  ForeignNotes& notes_;
  ForeignSettings& to_;
  std::string uri_;
};

// "2:14" of the byte at `position`, from 0 on.
std::string place_of(std::string_view text, size_t position) {
  const std::string_view before = text.substr(0, std::min(position, text.size()));
  const size_t begin = before.rfind('\n') + 1;  // npos + 1 is 0
  return fmt::format("{}:{}", 1 + std::ranges::count(before, '\n'), 1 + before.size() - begin);
}

}  // namespace

Result<ForeignSettings> parse_mlserver_settings(std::string_view text, const std::string& file) try {
  FOLIOT_RETURN_IF_ERROR(check_json_bounds(text, {}).with_context(file));
  const Json json = Json::parse(text);
  ForeignSettings settings;
  settings.file = std::filesystem::path(file).filename().string();
  {
    ForeignNotes notes(settings.notes);
    FOLIOT_RETURN_IF_ERROR(MlserverReading(text, json, file, notes, settings).run());
  }
  return settings;
} catch (const Json::parse_error& error) {
  return Status::invalid_argument(
      fmt::format("{}:{}: this is no JSON", file, place_of(text, error.byte == 0 ? 0 : error.byte - 1)));
}

}  // namespace foliot
