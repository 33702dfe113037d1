#include "models/repository/model_template.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/compiler/bucket_suggestion.h"
#include "engine/compiler/compiler.h"
#include "engine/compiler/dimensions.h"
#include "engine/compiler/onnx_reader.h"
#include "foundation/base/toml_text.h"

namespace foliot {
namespace {

// One way in which the model may be compiled, and what came of it.
struct Attempt {
  Dimensions dimensions;
  BucketSizes buckets;
  std::optional<Program> program;
  Status status;
  uint32_t batch_size_max = 0;  // of kBatchSizes; with batching
};

constexpr std::array<uint32_t, 5> kBatchSizes{1, 2, 4, 8, 16};

std::vector<BucketSizes> guesses(const std::vector<VariableDimension>& variable) {
  if (variable.empty()) return {{}};
  std::vector<BucketSizes> all{suggest_buckets(variable, {}), suggest_buckets(variable, {}, 1)};
  for (const int64_t size : {32, 64, 224, 1}) {
    BucketSizes& same = all.emplace_back();
    for (const VariableDimension& dimension : variable) same[dimension.name] = {size};
  }
  return all;
}

class Trial {
 public:
  Trial(const std::filesystem::path& model, const std::function<std::unique_ptr<Device>()>& make_device,
        const std::function<void(const std::string& step)>& step)
      : model_(model), make_device_(make_device), step_(step) {}

  // The first attempt that succeeds, or else the first.
  Result<Attempt> run() {
    FOLIOT_ASSIGN_OR_RETURN(const OnnxModel content, read_onnx(model_));
    std::optional<Attempt> first;
    for (const bool may_batch : {true, false}) {
      FOLIOT_ASSIGN_OR_RETURN(const Dimensions dimensions, find_dimensions(content, {}, may_batch));
      for (const BucketSizes& buckets : guesses(dimensions.variable)) {
        Attempt attempt = compile_with(dimensions, buckets, {1, 2});  // two show whether it can be batched
        if (attempt.status.ok()) {
          attempt.batch_size_max = attempt.program->batching ? largest_batch(dimensions, buckets) : 0;
          if (has_leading_sizes(*attempt.program)) {
            FOLIOT_ASSIGN_OR_RETURN(attempt.dimensions, find_dimensions(content, {}, false));
            attempt.buckets = suggest_buckets(attempt.dimensions.variable, buckets);
          }
          return attempt;
        }
        if (!first) first = std::move(attempt);
      }
      if (!dimensions.is_guess) break;
    }
    return *std::move(first);
  }

 private:
  // Whether a first dimension that was to be the batch has sizes of its own.
  static bool has_leading_sizes(const Program& program) {
    return !program.batching && std::ranges::any_of(program.inputs, [](const TensorSpec& input) {
      return !input.dimension_names.empty() && !input.dimension_names.front().empty();
    });
  }

  // A large batch may need more memory than it may have, or meet what small ones do not.
  uint32_t largest_batch(const Dimensions& dimensions, const BucketSizes& buckets) const {
    for (size_t i = kBatchSizes.size(); i-- > 2;) {
      const Attempt attempt = compile_with(dimensions, buckets, {1, kBatchSizes[i]});
      if (attempt.status.ok() && attempt.program->batching) return kBatchSizes[i];
    }
    return 2;
  }

  Attempt compile_with(const Dimensions& dimensions, const BucketSizes& buckets,
                       std::vector<uint32_t> batch_sizes) const {
    if (step_) {
      step_(fmt::format("compiling for batches of {}{}{}", batch_sizes.back(), buckets.empty() ? "" : " with ",
                        buckets.empty() ? "" : buckets_as_toml(buckets)));
    }
    CompileOptions options;
    options.batch_sizes = std::move(batch_sizes);
    options.profile_runs = 1;
    options.buckets = buckets;
    Attempt attempt{.dimensions = dimensions, .buckets = buckets, .program = {}, .status = {}};
    Result<CompiledProgram> compiled = compile(model_, options, *make_device_());
    attempt.status = compiled.status();
    if (compiled.ok()) attempt.program = std::move(compiled->program);
    return attempt;
  }

  const std::filesystem::path& model_;
  const std::function<std::unique_ptr<Device>()>& make_device_;
  const std::function<void(const std::string& step)>& step_;
};

// For a comment: in one line.
std::string one_line(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  return text;
}

std::string shape_of(const OnnxValueInfo& value) {
  if (!value.dimensions) return "of unknown shape";
  std::vector<std::string> extents;
  for (const OnnxDimension& dimension : *value.dimensions) {
    const std::string symbol = dimension.symbol.empty() ? "?" : dimension.symbol;
    extents.push_back(dimension.value != -1 ? std::to_string(dimension.value) : symbol);
  }
  return fmt::format("[{}]", fmt::join(extents, ", "));
}

void append_tensors(std::string& text, std::string_view title, const std::vector<OnnxValueInfo>& tensors) {
  text += fmt::format("# {}:\n", title);
  for (const OnnxValueInfo& tensor : tensors) {
    text += one_line(fmt::format("#   {}  {}  {}", tensor.name, to_string(tensor.type), shape_of(tensor))) + "\n";
  }
}

// What the inputs call the batch, each name once.
std::vector<std::string> batch_names(const Dimensions& dimensions) {
  std::vector<std::string> names;
  for (const OnnxValueInfo& input : dimensions.inputs) {
    const std::string name = toml_text(input.dimensions->front().symbol);
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

std::string why_not_batched(const Attempt& attempt) {
  constexpr std::string_view kNote = "compiled without batching: ";
  if (attempt.program) {
    for (const std::string& note : attempt.program->notes) {
      // What follows names the sizes that this trial was compiled for.
      if (note.starts_with(kNote)) return note.substr(kNote.size(), note.rfind("; requests ") - kNote.size());
    }
  }
  return attempt.dimensions.why_not;
}

void append_batch(std::string& text, const Attempt& attempt) {
  const bool batches = attempt.program ? attempt.program->batching : attempt.dimensions.batching;
  if (!batches) {
    text += one_line("# Requests are run one by one: " + why_not_batched(attempt)) + "\n\n";
    return;
  }
  text +=
      "# Requests are run together in batches of these sizes, along the first dimension of every input. A\n"
      "# larger batch serves more per second and takes longer: leave out sizes that do not fit the deadline.\n"
      "batch_sizes = ";
  const auto sizes = attempt.program ? std::ranges::count_if(
                                           kBatchSizes, [&](uint32_t size) { return size <= attempt.batch_size_max; })
                                     : static_cast<std::ptrdiff_t>(kBatchSizes.size());
  text += fmt::format("[{}]\n\n", fmt::join(std::span(kBatchSizes).first(static_cast<size_t>(sizes)), ", "));
  if (attempt.dimensions.inputs.front().dimensions->front().value != -1) return;
  const std::vector<std::string> names = batch_names(attempt.dimensions);
  text += names.size() == 1
              ? fmt::format("# The name of the batch dimension, which was found.\n# batch_dimension = {}\n\n", names[0])
              : fmt::format(
                    "# The names of the batch dimension: the model has one for each input.\n"
                    "batch_dimension = [{}]\n\n",
                    fmt::join(names, ", "));
}

void append_buckets(std::string& text, const Attempt& attempt) {
  if (attempt.dimensions.variable.empty()) return;
  text +=
      "# The sizes that the model is compiled for. The inputs of a request are padded with zeros up to the\n"
      "# first sizes that they fit in; larger requests are refused. Choose sizes that your requests have: a\n"
      "# shorter list compiles faster and takes less memory, a longer one pads less. The first sizes of all\n"
      "# lists belong together, then the second ones, and so on, so all lists have one length.\n";
  for (const std::string& name : leading_dimensions(attempt.dimensions)) {
    text += one_line(fmt::format(
                "# {}, the first dimension, is no batch and is never padded: a request has exactly one of its sizes.",
                name)) +
            "\n";
  }
  text += "[buckets]\n";
  for (const VariableDimension& dimension : attempt.dimensions.variable) {
    text += one_line(fmt::format("# {}", fmt::join(dimension.places, ", "))) + "\n";
    text += fmt::format("{} = {}\n", toml_key(dimension.name), toml_list(attempt.buckets.at(dimension.name)));
  }
}

std::string text_of(const std::filesystem::path& model, const OnnxModel& content, const Attempt& attempt) {
  std::string text = one_line(fmt::format("# Settings of {}, for `foliot serve`.", model.filename().string())) +
                     "\n# All may be left out; lines in comments show defaults or examples.\n#\n";
  append_tensors(text, "Inputs", attempt.dimensions.inputs);
  append_tensors(text, "Outputs", content.outputs);
  if (!attempt.status.ok()) {
    text += one_line("# It does not compile with these settings: " + attempt.status.message()) + "\n";
  }
  text +=
      "\n# The name under which it is served; that of its folder if there is none here.\n"
      "# name = \"my_model\"\n\n"
      "# The deadline of requests that bring none: they are answered within it or refused at once. Without\n"
      "# it they are best effort, and run when no deadline is endangered.\n"
      "# default_slo = \"50ms\"\n\n";
  append_batch(text, attempt);
  text +=
      "# Where not all requests can be served: what an answer of this model is worth against one of another.\n"
      "# weight = 1\n\n"
      "# For how long a batch that is not full may wait for more requests, while those in it have time: they\n"
      "# are answered later, and take less of the processor where a batch costs little more than one row.\n"
      "# \"auto\": for as long as that is worth it.\n"
      "# batch_delay = \"0ms\"\n\n"
      "# Whether a request with the same inputs as an earlier one may be answered with its prediction.\n"
      "# cache = false\n\n"
      "# \"bfloat16\" computes convolutions and products faster and less exactly, on CPUs that can.\n"
      "# precision = \"float32\"\n";
  if (!attempt.dimensions.variable.empty()) text += '\n';
  append_buckets(text, attempt);
  return text;
}

}  // namespace

Result<ModelTemplate> make_model_template(const std::filesystem::path& model,
                                          const std::function<std::unique_ptr<Device>()>& make_device,
                                          const std::function<void(const std::string& step)>& step) {
  FOLIOT_ASSIGN_OR_RETURN(const Attempt attempt, Trial(model, make_device, step).run());
  FOLIOT_ASSIGN_OR_RETURN(const OnnxModel content, read_onnx(model));
  return ModelTemplate{text_of(model, content, attempt), attempt.status};
}

}  // namespace foliot
