#include "app/commands/infer_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/commands/exit_code.h"
#include "app/commands/flags.h"
#include "app/commands/server_call.h"
#include "edge/jobs/npy_file.h"
#include "foundation/base/random.h"
#include "foundation/base/units.h"
#include "foundation/platform/clock.h"
#include "load/client/input_generator.h"

namespace foliot {
namespace {

using InferJson = nlohmann::ordered_json;

struct InferFlags {
  ServerPlace server;
  std::string model;
  std::vector<std::string> inputs;
  std::optional<Duration> deadline;
  bool json = false;
};

// A request as the protocol's binary extension has it: JSON, then the bytes of inputs.
struct InferBody {
  InferJson head{{"inputs", InferJson::array()}};
  std::string bytes;

  void add(const InputTensor& tensor) {
    head["inputs"].push_back({{"name", tensor.name},
                              {"shape", tensor.shape},
                              {"datatype", tensor.datatype},
                              {"parameters", {{"binary_data_size", tensor.bytes.size()}}}});
    bytes += tensor.bytes;
  }
};

Result<std::vector<int64_t>> parse_extents(std::string_view text) {
  std::vector<int64_t> extents;
  while (!text.empty()) {
    int64_t extent = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
    const bool whole = end == text.data() + text.size();
    if (error != std::errc() || (!whole && *end != ',')) {
      return Status::invalid_argument("write random:EXTENT,EXTENT,... as in random:1,128");
    }
    extents.push_back(extent);
    text.remove_prefix(static_cast<size_t>(end - text.data()) + (whole ? 0 : 1));
  }
  return extents;
}

Status add_random(const TensorDescription& input, std::string_view shape, InferBody& body) {
  InputShapes shapes;
  if (!shape.empty()) {
    FOLIOT_ASSIGN_OR_RETURN(shapes[input.name], parse_extents(shape.substr(1)));
  } else if (std::ranges::any_of(input.shape.begin() + (input.shape.empty() ? 0 : 1), input.shape.end(),
                                 [](int64_t extent) { return extent < 0; })) {
    return Status::invalid_argument(fmt::format("its shape is [{}], so give all extents: --input {}=random:1,...",
                                                fmt::join(input.shape, ", "), input.name));
  }
  Random random(1);
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<InputTensor> tensors,
                          random_inputs({.name = "", .inputs = {input}}, 1, shapes, random));
  body.add(tensors.front());
  return Status();
}

Status add_file(const TensorDescription& input, const std::string& file, InferBody& body) {
  FOLIOT_ASSIGN_OR_RETURN(const NpyArray array, read_npy(file));
  const auto* bytes = reinterpret_cast<const char*>(array.bytes.data());
  body.add({.name = input.name,
            .datatype = std::string(to_string(array.type)),
            .shape = array.shape,
            .bytes = std::string(bytes, array.bytes.size())});
  return Status();
}

// The extents of nested lists, by their first elements; the server counts all.
std::vector<int64_t> shape_of(const InferJson& value) {
  std::vector<int64_t> shape;
  for (const InferJson* at = &value; at->is_array(); at = &at->front()) {
    shape.push_back(static_cast<int64_t>(at->size()));
    if (at->empty()) break;
  }
  return shape;
}

Status add_json(const TensorDescription& input, const std::string& text, InferBody& body) {
  const InferJson value = InferJson::parse(text, nullptr, false);
  if (value.is_discarded()) {
    return Status::invalid_argument(
        fmt::format("'{}' is none of @FILE.npy, random, random:1,128 and JSON such as [[1, 2, 3]]", text));
  }
  body.head["inputs"].push_back(
      {{"name", input.name}, {"shape", shape_of(value)}, {"datatype", input.datatype}, {"data", value}});
  return Status();
}

Status add_input(const TensorDescription& input, const std::string& value, InferBody& body) {
  if (value.starts_with('@')) return add_file(input, value.substr(1), body);
  if (value == "random" || value.starts_with("random:")) {
    return add_random(input, std::string_view(value).substr(6), body);
  }
  return add_json(input, value, body);
}

Result<ModelDescription> describe(const InferFlags& flags, const std::string& path) {
  FOLIOT_ASSIGN_OR_RETURN(const std::string answer, ask_server(flags.server, {.path = path}));
  const InferJson json = InferJson::parse(answer, nullptr, false);
  ModelDescription model{.name = flags.model, .inputs = {}};
  try {
    for (const InferJson& input : json.at("inputs")) {
      model.inputs.push_back({.name = input.at("name"), .datatype = input.at("datatype"), .shape = input.at("shape")});
    }
  } catch (const InferJson::exception&) {
    return Status::unavailable(fmt::format("'{}' has no inputs in what the server says of it", flags.model));
  }
  return model;
}

// {input: value}, as --input has them.
Result<std::map<std::string, std::string>> given_inputs(const InferFlags& flags, const ModelDescription& model) {
  std::map<std::string, std::string> given;
  for (const std::string& text : flags.inputs) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) {
      return Status::invalid_argument(
          fmt::format("--input '{}': write NAME=@FILE.npy, NAME=random or NAME=JSON", text));
    }
    const std::string name = text.substr(0, equals);
    if (std::ranges::find(model.inputs, name, &TensorDescription::name) == model.inputs.end()) {
      std::vector<std::string> names;
      for (const TensorDescription& input : model.inputs) names.push_back(input.name);
      return Status::invalid_argument(
          fmt::format("the model has no input '{}'; it has {}", name, fmt::join(names, ", ")));
    }
    given[name] = text.substr(equals + 1);
  }
  return given;
}

Result<InferBody> make_body(const InferFlags& flags, const ModelDescription& model) {
  FOLIOT_ASSIGN_OR_RETURN(const auto given, given_inputs(flags, model));
  InferBody body;
  for (const TensorDescription& input : model.inputs) {
    const auto found = given.find(input.name);
    const Status added = add_input(input, found == given.end() ? "random" : found->second, body);
    if (!added.ok()) return added.with_context(fmt::format("input '{}'", input.name));
  }
  if (flags.deadline) body.head["parameters"]["timeout"] = flags.deadline->nanoseconds() / 1000;
  return body;
}

void print_outputs(const InferJson& answer) {
  constexpr size_t kShownMax = 10;
  for (const InferJson& output : answer.at("outputs")) {
    const InferJson& data = output.at("data");
    std::vector<std::string> shown;
    for (size_t i = 0; i < std::min(data.size(), kShownMax); ++i) shown.push_back(data[i].dump());
    fmt::print("{} {} {}: {}{}\n", output.at("name").get<std::string>(), output.at("datatype").get<std::string>(),
               output.at("shape").dump(), fmt::join(shown, ", "), data.size() > kShownMax ? ", ..." : "");
  }
}

Status infer(const InferFlags& flags) {
  const std::string path = "/v2/models/" + flags.model;
  FOLIOT_ASSIGN_OR_RETURN(const ModelDescription model, describe(flags, path));
  FOLIOT_ASSIGN_OR_RETURN(const InferBody body, make_body(flags, model));
  const std::string head = body.head.dump();
  const TimePoint begin = monotonic_now();
  FOLIOT_ASSIGN_OR_RETURN(
      const std::string answer,
      ask_server(flags.server, {.method = "POST",
                                .path = path + "/infer",
                                .body = head + body.bytes,
                                .headers = {"Content-Type: application/octet-stream",
                                            fmt::format("Inference-Header-Content-Length: {}", head.size())}}));
  const Duration took = monotonic_now() - begin;
  if (flags.json) {
    fmt::print("{}\n", answer);
    return Status();
  }
  try {
    print_outputs(InferJson::parse(answer));
  } catch (const InferJson::exception& error) {
    return Status::unavailable(fmt::format("the answer is not one of the protocol: {}", error.what()));
  }
  fmt::print("answered in {}\n", format_duration(took));
  return Status();
}

}  // namespace

void add_infer_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("infer", "Ask a running server for one inference");
  command->footer(
      "Inputs that are not given are random, with one row. Of outputs the first elements are printed, with --json\n"
      "all. The exit code is 1 if the server refuses; the line says by when it could have answered.\n\n"
      "  foliot infer resnet50\n"
      "  foliot infer resnet50 --input input=@pixels.npy --deadline 50ms\n"
      "  foliot infer bert --input ids=random:1,128 --input 'mask=[[1, 1, 1]]'");
  auto flags = std::make_shared<InferFlags>();
  command->add_option("model", flags->model, "name of a model, pipeline, application or task")->required();
  command
      ->add_option("--input", flags->inputs,
                   "NAME=@FILE.npy, NAME=random, NAME=random:1,128 or NAME=JSON; once for each")
      ->type_name("NAME=VALUE")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_duration_flag(*command, "deadline", flags->deadline, "refuse at once what cannot be answered within it",
                    "the model's default SLO");
  add_server_flags(*command, flags->server);
  command->add_flag("--json", flags->json, "print what the server answers");
  command->callback([flags, &exit_code] {
    const Status status = infer(*flags);
    if (!status.ok()) fmt::print(stderr, "foliot infer: {}\n", status.message());
    exit_code = status.ok() ? 0 : kExitFailed;
  });
}

}  // namespace foliot
