#include "models/foreign/triton_settings.h"

#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <utility>

#include "foundation/core/action.h"
#include "triton_config.pb.h"

namespace foliot {
namespace {

using google::protobuf::Message;
using google::protobuf::TextFormat;
using Tree = TextFormat::ParseInfoTree;

constexpr int kNestingMax = 32;                                         // messages and lists within each other
constexpr uint64_t kTimeoutMicrosecondsMax = 24ull * 3600 * 1'000'000;  // longer ones are mistakes
constexpr Duration kQueueDelayMax = Duration::seconds(10);              // as of model.toml's batch_delay

struct Remark {
  std::string_view field;
  std::string_view remark;
};

// Why fields that Triton heeds are not read here. Others are said not to be read.
constexpr std::array<Remark, 14> kRemarks{{
    {"instance_group", "one instance computes on all cores, and --lanes says how many batches run at once"},
    {"optimization", "the compiler chooses kernels and layouts"},
    {"model_warmup", "a model's kernels are made and measured before it is served"},
    {"parameters", "options of a backend have no meaning here; threads are --threads"},
    {"format", "the order of dimensions is the model's"},
    {"label_filename", "labels are those that the model has"},
    {"is_shape_tensor", "there are no shape tensors"},
    {"max_queue_size", "what cannot be in time is refused, however long the queue is"},
    {"priority_levels", "the deadline is what puts requests in order"},
    {"default_priority_level", "the deadline is what puts requests in order"},
    {"priority_queue_policy", "the deadline is what puts requests in order"},
    {"preserve_ordering", "answers come as they are ready"},
    {"model_transaction_policy", "a request has one answer"},
    {"metric_tags", "metrics have the labels that docs/SERVING.md lists"},
}};

// Keeps the first error, and a warning for each field that the schema does not have. protobuf counts lines from 0.
class Collector : public google::protobuf::io::ErrorCollector {
 public:
  Collector(const std::string& file, const std::string& short_name, ForeignNotes& notes)
      : file_(file), short_name_(short_name), notes_(notes) {}

  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
    if (!status_.ok()) return;
    status_ = Status::invalid_argument(fmt::format("{}:{}:{}: {}{}", file_, line + 1, column + 1,
                                                   message.substr(0, kMessageBytesMax),
                                                   message.ends_with("got: ") ? "the end of the file" : ""));
  }

  // `message` ends with the field in quotes.
  void AddWarning(int line, google::protobuf::io::ColumnNumber, const std::string& message) override {
    const size_t end = message.rfind('"');
    const size_t begin = end == std::string::npos || end == 0 ? std::string::npos : message.rfind('"', end - 1);
    if (begin == std::string::npos) return;
    const std::string field = message.substr(begin + 1, std::min(end - begin - 1, kMessageBytesMax));
    const auto* const remark = std::ranges::find(kRemarks, field, &Remark::field);
    notes_.add(fmt::format("{}:{}: '{}' is not read{}{}", short_name_, line + 1, field,
                           remark == kRemarks.end() ? "" : ": ", remark == kRemarks.end() ? "" : remark->remark));
  }

  const Status& status() const { return status_; }

 private:
  static constexpr size_t kMessageBytesMax = 200;
  const std::string& file_;
  const std::string& short_name_;
  ForeignNotes& notes_;
  Status status_;
};

// A word or number, a text in quotes, or another character.
struct Token {
  size_t begin = 0;
  size_t end = 0;
};

bool is_of_word(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Behind spaces and comments from `from` on; at the end of the text: an empty one.
Token next_token(std::string_view text, size_t from) {
  size_t begin = text.find_first_not_of(" \t\r\n", from);
  while (begin < text.size() && text[begin] == '#') begin = text.find_first_not_of(" \t\r\n", text.find('\n', begin));
  if (begin >= text.size()) return {text.size(), text.size()};
  size_t end = begin + 1;
  const char c = text[begin];
  if (c == '"' || c == '\'') {
    while (end < text.size() && text[end] != c && text[end] != '\n') end += text[end] == '\\' ? 2 : 1;
    end = std::min(end + 1, text.size());
  } else if (is_of_word(c)) {
    while (end < text.size() && is_of_word(text[end])) ++end;
  }
  return {begin, end};
}

// The parser goes down by recursion.
Status check_nesting(std::string_view text, const std::string& file) {
  int depth = 0;
  for (Token token = next_token(text, 0); token.begin < text.size(); token = next_token(text, token.end)) {
    const char c = text[token.begin];
    if (c == '{' || c == '<' || c == '[') ++depth;
    if ((c == '}' || c == '>' || c == ']') && depth > 0) --depth;
    if (depth <= kNestingMax) continue;
    return Status::invalid_argument(fmt::format("{}:{}: messages and lists lie more than {} deep within each other",
                                                file, 1 + std::ranges::count(text.substr(0, token.begin), '\n'),
                                                kNestingMax));
  }
  return Status();
}

// The text in a form that means the same, in which protobuf 3.21 can skip fields that it does not know. Of these it
// reads neither `name [ {...}, {...} ]`, which gets a colon, in the place of a space if there is one, nor `name: [ ]`,
// which is blanked out. So lines stay, and columns nearly always.
std::string made_skippable(std::string text) {
  Token name;
  bool has_colon = false;
  for (Token token = next_token(text, 0); token.begin < text.size(); token = next_token(text, token.end)) {
    const char c = text[token.begin];
    if (is_of_word(c) || c == ':') {
      if (c != ':') name = token;
      has_colon = c == ':';
      continue;
    }
    const Token next = next_token(text, token.end);
    if (c == '[' && name.end > 0 && next.begin < text.size() && text[next.begin] == ']') {
      for (size_t i = name.begin; i < next.end; ++i) text[i] = text[i] == '\n' ? '\n' : ' ';
      token = next;
    } else if (c == '[' && name.end > 0 && !has_colon) {
      const size_t room = text[token.begin - 1] == ' ' ? 1 : 0;
      text.replace(token.begin - room, room, ":");
      token.end += 1 - room;
    }
    name = {};
  }
  return text;
}

std::optional<DataType> type_of(triton::DataType type) {
  if (type == triton::TYPE_INVALID) return std::nullopt;
  if (type == triton::TYPE_STRING) return DataType::kBytes;
  constexpr size_t kPrefix = std::string_view("TYPE_").size();
  return parse_data_type(triton::DataType_Name(type).substr(kPrefix));
}

// Turns the message into settings.
class Reading {
 public:
  Reading(const triton::ModelConfig& config, const Tree& tree, const std::string& file, const std::string& short_name,
          ForeignNotes& notes, ForeignSettings& to)
      : config_(config), tree_(tree), file_(file), short_name_(short_name), notes_(notes), to_(to) {}

  Status run(const std::string& folder_name) {
    FOLIOT_RETURN_IF_ERROR(check_kind());
    if (config_.has_name() && !config_.name().empty() && config_.name() != folder_name) {
      return fail(line(config_, &tree_, "name"),
                  fmt::format("the name is '{}', and the folder's '{}'; let them be the same, or remove the line",
                              config_.name(), folder_name));
    }
    FOLIOT_RETURN_IF_ERROR(read_file());
    FOLIOT_RETURN_IF_ERROR(read_versions());
    FOLIOT_RETURN_IF_ERROR(read_batch_sizes());
    if (config_.has_dynamic_batching()) FOLIOT_RETURN_IF_ERROR(read_batching());
    if (config_.has_response_cache()) {
      to_.cache = {config_.response_cache().enable(), at(line(config_, &tree_, "response_cache"), "response_cache")};
    }
    for (const bool is_output : {false, true}) FOLIOT_RETURN_IF_ERROR(read_tensors(is_output));
    return Status();
  }

 private:
  static constexpr int kNoIndex = -1;

  // From 1 on; 0: it is not known.
  static int line(const Message& message, const Tree* tree, const char* field, int index = kNoIndex) {
    if (tree == nullptr) return 0;
    return tree->GetLocation(message.GetDescriptor()->FindFieldByName(field), index).line + 1;
  }
  static const Tree* inner(const Message& message, const Tree* tree, const char* field, int index = kNoIndex) {
    if (tree == nullptr) return nullptr;
    return tree->GetTreeForNested(message.GetDescriptor()->FindFieldByName(field), index);
  }
  std::string at(int line, std::string_view field) const { return fmt::format("{}:{}: {}", short_name_, line, field); }
  Status fail(int line, std::string_view message) const {
    return Status::invalid_argument(fmt::format("{}:{}: {}", file_, line, message));
  }
  Status cannot_serve(int line, std::string_view message) const {
    return Status::unimplemented(fmt::format("{}:{}: {}", file_, line, message));
  }
  void note(int line, std::string_view message) { notes_.add(fmt::format("{}:{}: {}", short_name_, line, message)); }

  // What kind of model it is.
  Status check_kind() const {
    const bool is_ensemble = config_.platform() == "ensemble" || config_.has_ensemble_scheduling();
    if (is_ensemble) {
      const int where = line(config_, &tree_, config_.has_ensemble_scheduling() ? "ensemble_scheduling" : "platform");
      return cannot_serve(where,
                          "ensembles are pipelines here: write its steps as stages of a pipeline.toml in this folder "
                          "(docs/PIPELINES.md)");
    }
    if (config_.has_sequence_batching()) {
      return cannot_serve(line(config_, &tree_, "sequence_batching"),
                          "no state is kept between the requests of a sequence; let the model take the state as an "
                          "input and give it as an output, and remove sequence_batching");
    }
    for (const char* const field : {"backend", "platform"}) {
      const bool is_backend = std::string_view(field) == "backend";
      const std::string& value = is_backend ? config_.backend() : config_.platform();
      if (value.empty() || value == "onnxruntime" || value == "onnxruntime_onnx" || value == "onnx") continue;
      if (value == "python") {
        return cannot_serve(
            line(config_, &tree_, field),
            "a model.py of Triton's backend 'python' has to be ported: make its execute() the predict() of a "
            "container (docs/CONTAINERS.md), and remove this line");
      }
      return cannot_serve(
          line(config_, &tree_, field),
          fmt::format("{} '{}' is none that is served; export the model to ONNX, or serve it by a model.py "
                      "(docs/CONTAINERS.md), and remove this line",
                      field, value));
    }
    return Status();
  }

  Status read_file() {
    const std::string& name = config_.default_model_filename();
    if (name.empty()) return Status();
    const std::filesystem::path path = name;
    if (path.filename() == path && path.extension() == ".onnx" && name != ".onnx") {
      to_.model_file = name;
      return Status();
    }
    return fail(line(config_, &tree_, "default_model_filename"),
                fmt::format("default_model_filename is '{}', and must be the name of a .onnx file in the folder of the "
                            "version",
                            name));
  }

  Status read_versions() {
    if (!config_.has_version_policy()) return Status();
    const triton::VersionPolicy& policy = config_.version_policy();
    const int where = line(config_, &tree_, "version_policy");
    VersionChoice choice{.all = policy.has_all(), .latest = std::max(policy.latest().num_versions(), 1U)};
    for (const int64_t version : policy.specific().versions()) {
      if (version < 1) return fail(where, fmt::format("version {} of version_policy must be at least 1", version));
      choice.listed.push_back(static_cast<uint64_t>(version));
    }
    if (policy.has_specific() && choice.listed.empty()) {
      return fail(where, "version_policy names no version; name one, or remove it");
    }
    std::ranges::sort(choice.listed);
    choice.listed.erase(std::ranges::unique(choice.listed).begin(), choice.listed.end());
    to_.versions = {std::move(choice), at(where, "version_policy")};
    return Status();
  }

  // Triton takes a file that has tensors, and no max_batch_size, as one with 0.
  bool says_batch_size() const {
    return config_.has_max_batch_size() || config_.input_size() > 0 || config_.output_size() > 0;
  }

  Status read_batch_sizes() {
    if (!says_batch_size()) return Status();
    const int where = line(config_, &tree_, "max_batch_size");
    const int32_t max = config_.max_batch_size();
    if (max < 0) return fail(where, fmt::format("max_batch_size is {}, and must be 0, for no batches, or more", max));
    if (static_cast<uint32_t>(max) > kCompiledBatchSizeMax) {
      note(where,
           fmt::format("max_batch_size is {}, and models are compiled for at most {}; larger requests run in parts",
                       max, kCompiledBatchSizeMax));
    }
    to_.batch_sizes = {batch_sizes_up_to(std::clamp<uint32_t>(static_cast<uint32_t>(max), 1, kCompiledBatchSizeMax)),
                       at(where, "max_batch_size")};
    return Status();
  }

  Status read_batching() {
    const triton::DynamicBatching& batching = config_.dynamic_batching();
    const Tree* const tree = inner(config_, &tree_, "dynamic_batching");
    FOLIOT_RETURN_IF_ERROR(read_preferred(batching, tree));
    if (batching.has_max_queue_delay_microseconds()) {
      const int where = line(batching, tree, "max_queue_delay_microseconds");
      const uint64_t delay = batching.max_queue_delay_microseconds();
      if (delay > static_cast<uint64_t>(kQueueDelayMax.to_seconds() * 1e6)) {
        return fail(where, fmt::format("max_queue_delay_microseconds is {}, and at most {:g} s", delay,
                                       kQueueDelayMax.to_seconds()));
      }
      to_.batch_delay = {Duration::microseconds(static_cast<int64_t>(delay)),
                         at(where, "max_queue_delay_microseconds")};
    }
    if (!batching.has_default_queue_policy()) return Status();
    return read_queue(batching.default_queue_policy(), inner(batching, tree, "default_queue_policy"));
  }

  Status read_preferred(const triton::DynamicBatching& batching, const Tree* tree) {
    if (batching.preferred_batch_size().empty()) return Status();
    const int where = line(batching, tree, "preferred_batch_size", 0);
    const auto max = static_cast<uint32_t>(config_.max_batch_size());
    std::set<uint32_t> sizes{1};
    for (const int32_t size : batching.preferred_batch_size()) {
      if (size < 1 || static_cast<uint32_t>(size) > max) {
        return fail(where,
                    fmt::format("preferred_batch_size has {}, and must be from 1 to max_batch_size, {}", size, max));
      }
      sizes.insert(std::min(static_cast<uint32_t>(size), kCompiledBatchSizeMax));
    }
    sizes.insert(std::min(max, kCompiledBatchSizeMax));
    to_.batch_sizes = {{sizes.begin(), sizes.end()}, at(where, "preferred_batch_size")};
    return Status();
  }

  Status read_queue(const triton::QueuePolicy& policy, const Tree* tree) {
    if (policy.has_allow_timeout_override() && !policy.allow_timeout_override()) {
      note(line(policy, tree, "allow_timeout_override"), "a request may always have a shorter timeout of its own");
    }
    const int where = line(policy, tree, "default_timeout_microseconds");
    const uint64_t timeout = policy.default_timeout_microseconds();
    if (policy.timeout_action() == triton::DELAY) {
      note(line(policy, tree, "timeout_action"),
           "timeout_action DELAY: requests that are late are not put off but refused, so there is no default deadline");
      return Status();
    }
    if (timeout == 0) return Status();
    if (timeout > kTimeoutMicrosecondsMax) {
      return fail(where, fmt::format("default_timeout_microseconds is {}, and at most {}, a day", timeout,
                                     kTimeoutMicrosecondsMax));
    }
    to_.default_slo = {Duration::microseconds(static_cast<int64_t>(timeout)),
                       at(where, "default_timeout_microseconds")};
    return Status();
  }

  Status read_tensors(bool is_output) {
    const char* const field = is_output ? "output" : "input";
    const auto& tensors = is_output ? config_.output() : config_.input();
    for (int i = 0; i < tensors.size(); ++i) {
      const triton::Tensor& tensor = tensors[i];
      const Tree* const tree = inner(config_, &tree_, field, i);
      if (tensor.name().empty()) return fail(line(config_, &tree_, field, i), fmt::format("an {} has no name", field));
      const int where = line(tensor, tree, "name");
      if (tensor.has_reshape()) {
        note(line(tensor, tree, "reshape"),
             fmt::format("'{}' is not reshaped: clients send and get the shape that the model has", tensor.name()));
      }
      DeclaredTensor declared{.name = tensor.name(),
                              .is_output = is_output,
                              .type = type_of(tensor.data_type()),
                              .dimensions = {},
                              .where = fmt::format("{}:{}", short_name_, where)};
      if (tensor.has_reshape() || tensor.dims_size() > 0) {
        const auto& dims = tensor.has_reshape() ? tensor.reshape().shape() : tensor.dims();
        declared.dimensions.emplace();
        if (config_.max_batch_size() > 0) declared.dimensions->push_back(-1);
        for (const int64_t extent : dims) {
          if (extent < -1 || extent == 0) {
            return fail(where, fmt::format("'{}' has a dimension of {}, which must be -1, for any, or at least 1",
                                           tensor.name(), extent));
          }
          declared.dimensions->push_back(extent);
        }
      }
      to_.tensors.push_back(std::move(declared));
    }
    return Status();
  }

  const triton::ModelConfig& config_;
  const Tree& tree_;
  const std::string& file_;
  const std::string& short_name_;
  ForeignNotes& notes_;
  ForeignSettings& to_;
};

}  // namespace

Result<ForeignSettings> parse_triton_settings(std::string_view text, const std::string& file,
                                              const std::string& folder_name) {
  ForeignSettings settings;
  settings.file = std::filesystem::path(file).filename().string();
  Tree tree;
  triton::ModelConfig config;
  {
    ForeignNotes notes(settings.notes);
    Collector collector(file, settings.file, notes);
    FOLIOT_RETURN_IF_ERROR(check_nesting(text, file));
    TextFormat::Parser parser;
    parser.RecordErrorsTo(&collector);
    parser.WriteLocationsTo(&tree);
    parser.AllowUnknownField(true);
    if (!parser.ParseFromString(made_skippable(std::string(text)), &config)) {
      return collector.status().ok() ? Status::invalid_argument(fmt::format("{} is no config.pbtxt", file))
                                     : collector.status();
    }
    FOLIOT_RETURN_IF_ERROR(Reading(config, tree, file, settings.file, notes, settings).run(folder_name));
  }
  return settings;
}

}  // namespace foliot
