#include "engine/compiler/compiler.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "engine/compiler/batch_check.h"
#include "engine/compiler/bucket_suggestion.h"
#include "engine/compiler/dimensions.h"
#include "engine/compiler/example_input.h"
#include "engine/compiler/interface_specs.h"
#include "engine/compiler/memory_planner.h"
#include "engine/compiler/narrowing_check.h"
#include "engine/compiler/onnx_reader.h"
#include "engine/compiler/operator_rates.h"
#include "engine/compiler/passes.h"
#include "engine/compiler/plan_durations.h"
#include "engine/compiler/processor_time.h"
#include "engine/compiler/program_runner.h"
#include "engine/compiler/row_proof.h"
#include "engine/compiler/slow_operators.h"
#include "engine/compiler/translate.h"
#include "engine/compiler/weights_layout.h"
#include "foundation/base/hash.h"
#include "foundation/base/random.h"

namespace foliot {
namespace {

// Part of every key: programs of a compiler that makes other ones are made anew.
constexpr int kCompilerVersion = 12;
constexpr uint32_t kBatchSizeMax = 4096;
// Runs of a plan in each layout that is tried; after so long no further one begins.
constexpr int kChoosingRuns = 4;
constexpr Duration kChoosingTime = Duration::milliseconds(300);
// Of a large batch: what is fast for so many rows is fast for more.
constexpr uint32_t kChoosingRowsMax = 8;

// How far rows may differ from one batch size to another, as a share of the largest
// value: in float32, and at most where that is what narrowing costs.
constexpr double kBatchTolerance = 1e-3, kNarrowTolerance = 0.5;
// And where a model that is written quantised computes in float32: a tie that is rounded
// the other way is a step of its codes, which later layers spread as int8 would.
constexpr double kQuantizedTolerance = 0.25;

// Of CompileOptions::first_size_only.
constexpr uint32_t kFirstProfileRuns = 1;

// Shares of the whole at which the steps begin.
constexpr double kTranslating = 0.1, kLowering = 0.3, kLoading = 0.6, kChecking = 0.65, kMeasuring = 0.8;

Status check_options(const CompileOptions& options) {
  const auto& sizes = options.batch_sizes;
  const bool ascending = std::ranges::adjacent_find(sizes, std::greater_equal()) == sizes.end();
  if (sizes.empty() || !ascending || sizes.front() < 1 || sizes.back() > kBatchSizeMax) {
    return Status::invalid_argument(
        fmt::format("batch sizes must be ascending and in 1..{}, not [{}]", kBatchSizeMax, fmt::join(sizes, ", ")));
  }
  if (options.page_bytes == 0 || options.page_bytes % 4096 != 0) {
    return Status::invalid_argument(
        fmt::format("the page size must be a multiple of 4096, not {}", options.page_bytes));
  }
  return {};
}

class Compilation {
 public:
  Compilation(const CompileOptions& options, Device& device, const Progress& progress)
      : options_(options),
        asked_sizes_(options.first_size_only ? std::vector{options.batch_sizes.front()} : options.batch_sizes),
        device_(device),
        progress_(progress),
        narrowing_{.quantized = device.supports_products(DataType::kUint8).ok(),
                   .bfloat16 = options.precision == Precision::kBfloat16 &&
                               device.supports_products(DataType::kBfloat16).ok()} {}

  Result<CompiledProgram> run(OnnxModel model, std::string key) {
    FOLIOT_ASSIGN_OR_RETURN(dimensions_, resolve_dimensions(model, options_));
    program_.notes = model.notes;
    if (dimensions_.is_guess) if_not_batched_ = resolve_dimensions(model, options_, false).status();
    FOLIOT_RETURN_IF_ERROR(make_graphs(model));
    FOLIOT_RETURN_IF_ERROR(describe_interface(model));
    quantizes_ =
        std::ranges::find(graphs_.front().nodes, OperatorKind::kQuantize, &Node::kind) != graphs_.front().nodes.end();
    FOLIOT_RETURN_IF_ERROR(compute_in_float32(model));
    FOLIOT_RETURN_IF_ERROR(note_what_is_wide(model));
    model = {};  // its constants live on where a graph still uses them
    program_.content_hash = std::move(key);
    program_.device_kind = device_.kind();
    program_.device_fingerprint = device_.fingerprint();
    program_.page_bytes = options_.page_bytes;
    FOLIOT_RETURN_IF_ERROR(lower());
    FOLIOT_RETURN_IF_ERROR(check_and_measure());
    report("done", 1);
    return CompiledProgram{std::move(program_), std::move(weights_), narrowing_error_};
  }

 private:
  void report(std::string_view step, double share) const {
    if (progress_) progress_(step, share);
  }

  uint32_t own_batch_size() const { return static_cast<uint32_t>(dimensions_.own_batch_size); }

  // The graph of one batch size and bucket, as the model has it.
  Result<Graph> translate_for(const OnnxModel& model, uint32_t batch_size, size_t bucket) {
    const Rebatch rebatch{.from = dimensions_.writes_batch_size ? dimensions_.own_batch_size : batch_size,
                          .to = batch_size};
    FOLIOT_ASSIGN_OR_RETURN(
        Graph graph,
        translate(model, dimensions_.input_shapes(batch_size, dimensions_.buckets[bucket]), rebatch, pool_));
    graph.batch_size = batch_size;
    graph.bucket = static_cast<uint16_t>(bucket);
    return graph;
  }

  Result<Graph> make_graph(const OnnxModel& model, uint32_t batch_size, size_t bucket) {
    FOLIOT_ASSIGN_OR_RETURN(Graph graph, translate_for(model, batch_size, bucket));
    optimize(graph, pool_, narrowing_);
    return graph;
  }

  // An error that says why, where it cannot be shown that rows are independent.
  static Status prove(RowProof& proof, const Graph& graph) {
    std::string why = proof.add(graph);
    return why.empty() ? Status() : Status::unimplemented(std::move(why));
  }

  // All graphs of these batch sizes, or why one of them cannot be made.
  Status make_graphs_of(const OnnxModel& model, const std::vector<uint32_t>& batch_sizes, bool batching) {
    graphs_.clear();
    program_.batch_sizes = batch_sizes;
    program_.batching = batching;
    const double count = static_cast<double>(batch_sizes.size() * dimensions_.buckets.size());
    for (size_t bucket = 0; bucket < dimensions_.buckets.size(); ++bucket) {
      RowProof proof(pool_);
      if (batching && batch_sizes.size() == 1) {
        // A call may have several rows all the same.
        FOLIOT_ASSIGN_OR_RETURN(const Graph other, translate_for(model, batch_sizes[0] == 1 ? 2 : 1, bucket));
        FOLIOT_RETURN_IF_ERROR(prove(proof, other));
      }
      for (uint32_t batch_size : batch_sizes) {
        const double share = static_cast<double>(graphs_.size()) / count;
        report(fmt::format("translating batch {}", batch_size), kTranslating + (kLowering - kTranslating) * share);
        FOLIOT_ASSIGN_OR_RETURN(Graph graph, translate_for(model, batch_size, bucket));
        if (batching) FOLIOT_RETURN_IF_ERROR(prove(proof, graph));
        optimize(graph, pool_, narrowing_);
        if (!batching) graph.batch_size = 1;
        graphs_.push_back(std::move(graph));
      }
    }
    if (!batching) program_.batch_sizes = {1};
    return {};
  }

  // All batch sizes if the model can be batched, else its own.
  Status make_graphs(const OnnxModel& model) {
    std::vector<uint32_t> sizes = asked_sizes_;
    // Whether rows can be batched is found out by comparing two sizes.
    if (sizes.size() < options_.batch_sizes.size() && sizes.front() == own_batch_size()) {
      sizes.insert(own_batch_size() > 1 ? sizes.begin() : sizes.end(), own_batch_size() > 1 ? 1 : 2);
    }
    if (dimensions_.batching && dimensions_.own_batch_size <= kBatchSizeMax) {
      // The size that the model was written for is what the others are checked against.
      if (!std::ranges::binary_search(sizes, own_batch_size())) {
        sizes.insert(std::ranges::upper_bound(sizes, own_batch_size()), own_batch_size());
      }
      const Status status = make_graphs_of(model, sizes, true);
      if (status.ok()) return {};
      return make_graphs_without_batching(model, status.message());
    }
    return make_graphs_without_batching(
        model, dimensions_.batching ? fmt::format("its batch of {} is larger than {}", own_batch_size(), kBatchSizeMax)
                                    : dimensions_.why_not);
  }

  // A first dimension that varies is a set or a sequence, with sizes of its own; where these
  // cannot be compiled, it has the size that the model was written for.
  Status make_graphs_without_batching(const OnnxModel& model, std::string_view why) {
    if (!if_not_batched_.ok()) return go_on_without_batching(why);
    const Result<Dimensions> free = resolve_dimensions(model, options_, false);
    const std::vector<std::string> leading = free.ok() ? leading_dimensions(*free) : std::vector<std::string>();
    if (leading.empty()) {
      FOLIOT_RETURN_IF_ERROR(go_on_without_batching(why));
      return make_graphs_of(model, {own_batch_size()}, false);
    }
    const Dimensions batched = std::exchange(dimensions_, *free);
    const Status status = make_graphs_of(model, {1}, false);
    if (status.ok()) {
      return go_on_without_batching(
          fmt::format("{}; requests must have exactly one of the sizes {}: list others in "
                      "model.toml, such as {}",
                      why, describe_sizes(leading), example_sizes(leading[0])));
    }
    if (!batched.batching) return status;
    dimensions_ = batched;
    const std::string name(leading[0]);
    FOLIOT_RETURN_IF_ERROR(go_on_without_batching(fmt::format(
        "{}; requests have one row. If its exporter wrote the batch down as 1, set batch_dimension = \"{}\" "
        "in model.toml",
        why, name)));
    return make_graphs_of(model, {own_batch_size()}, false);
  }

  // "N = [1, 2, 4]".
  std::string describe_sizes(const std::vector<std::string>& names) const {
    std::vector<std::string> lists;
    for (const std::string& name : names) {
      std::vector<int64_t> sizes;
      for (const auto& bucket : dimensions_.buckets) sizes.push_back(bucket.at(name));
      lists.push_back(fmt::format("{} = {}", name, toml_list(sizes)));
    }
    return fmt::format("{}", fmt::join(lists, ", "));
  }

  // Sizes for all that vary, of which one more than was compiled.
  std::string example_sizes(const std::string& name) const {
    BucketSizes sizes;
    for (const auto& bucket : dimensions_.buckets)
      for (const auto& [dimension, extent] : bucket) sizes[dimension].push_back(extent);
    for (auto& [dimension, extents] : sizes) extents.push_back(extents.back() + (dimension == name ? 1 : 0));
    return buckets_as_toml(sizes);
  }

  // Notes why. An error if it was but a guess that the first dimensions are the batch: then
  // they need sizes.
  Status go_on_without_batching(std::string_view why) {
    if (!if_not_batched_.ok()) {
      return if_not_batched_.with_context(
          fmt::format("the inputs' first dimensions have different names and are no batch ({})", why));
    }
    program_.notes.push_back(fmt::format("compiled without batching: {}", why));
    return {};
  }

  std::vector<const Graph*> one_graph_per_bucket() const {
    std::vector<const Graph*> result;
    for (size_t i = 0; i < graphs_.size(); i += program_.batch_sizes.size()) result.push_back(&graphs_[i]);
    return result;
  }

  Status describe_interface(const OnnxModel& model) {
    outputs_ = model.outputs;
    example_values_ = example_values(graphs_.front());
    program_.inputs = input_specs(dimensions_, program_.batching);
    // Both ways at once, as long as the model is there.
    OutputExtents extents([&](const auto& sizes) { return output_shapes(model, sizes); }, dimensions_.buckets.back());
    std::vector<OutputExtents::Sizes> buckets = dimensions_.buckets;
    FOLIOT_ASSIGN_OR_RETURN(program_.outputs, output_specs(dimensions_, outputs_, one_graph_per_bucket(),
                                                           program_.batching, extents, &buckets));
    if (program_.batching) {
      whole_outputs_ = output_specs(dimensions_, outputs_, graphs_of_own_size(), false, extents, &buckets);
    }
    for (const auto& values : buckets) program_.buckets.push_back({.dimensions = values, .seed_exec = {}});
    return {};
  }

  std::optional<std::vector<Shape>> output_shapes(const OnnxModel& model, const OutputExtents::Sizes& sizes) {
    const Rebatch own{.from = dimensions_.own_batch_size, .to = dimensions_.own_batch_size};
    const Result<Graph> graph =
        translate(model, dimensions_.input_shapes(dimensions_.own_batch_size, sizes), own, pool_);
    if (!graph.ok()) return std::nullopt;
    std::vector<Shape> shapes;
    for (const ValueIndex output : graph->outputs) shapes.push_back(graph->values[output].shape);
    return shapes;
  }

  // REQUIRES: batching.
  std::vector<const Graph*> graphs_of_own_size() const {
    const auto own = std::ranges::find(program_.batch_sizes, own_batch_size()) - program_.batch_sizes.begin();
    std::vector<const Graph*> result;
    for (size_t i = static_cast<size_t>(own); i < graphs_.size(); i += program_.batch_sizes.size())
      result.push_back(&graphs_[i]);
    return result;
  }

  // Where the first graph computes in less than float32: what the same model gives
  // in float32, to compare with.
  Status compute_in_float32(const OnnxModel& model) {
    if (!is_narrowed(graphs_.front())) return {};
    report("computing in float32, to compare", kLowering);
    FOLIOT_ASSIGN_OR_RETURN(Graph graph, make_graph_with({}, model));
    graph.batch_size = graphs_.front().batch_size;
    FOLIOT_ASSIGN_OR_RETURN(wide_outputs_, run_once(graph, *device_.another(), example_values_));
    return {};
  }

  // What could be narrow, and is not since this device lacks the kernels.
  Status note_what_is_wide(const OnnxModel& model) {
    const auto note = [this](std::string_view what, const Status& why) {
      program_.notes.push_back(fmt::format("{} computed in float32: {}", what, why.message()));
    };
    const Status bfloat16 = device_.supports_products(DataType::kBfloat16);
    if (options_.precision == Precision::kBfloat16 && !bfloat16.ok()) note("precision = \"bfloat16\" is", bfloat16);
    const Status int8 = device_.supports_products(DataType::kUint8);
    if (int8.ok() || std::ranges::find(graphs_.front().nodes, OperatorKind::kDequantize, &Node::kind) ==
                         graphs_.front().nodes.end()) {
      return {};
    }
    FOLIOT_ASSIGN_OR_RETURN(const Graph graph, make_graph_with({.quantized = true}, model));
    if (is_narrowed(graph)) note("quantised convolutions and products are", int8);
    return {};
  }

  // The first graph, narrowed otherwise.
  Result<Graph> make_graph_with(Narrowing narrowing, const OnnxModel& model) {
    const Narrowing before = std::exchange(narrowing_, narrowing);
    Result<Graph> graph = make_graph(model, graph_rows(), 0);
    narrowing_ = before;
    return graph;
  }

  // Rows of the first graph as the model counts them.
  uint32_t graph_rows() const { return program_.batching ? program_.batch_sizes.front() : own_batch_size(); }

  Status compare_with_float32(ProgramRunner& runner) {
    if (wide_outputs_.empty()) return {};
    FOLIOT_ASSIGN_OR_RETURN(const auto outputs, run_example(runner, program_.plans.front(), example_values_));
    narrowing_error_ = largest_difference(wide_outputs_, outputs);
    return {};
  }

  // Lowers the graphs in every layout that the device proposes, and keeps what
  // runs fastest.
  Status lower() {
    const std::vector<std::string> layouts = device_.layouts(graphs_);
    std::optional<double> best;
    std::vector<Plan> best_plans;
    std::vector<std::byte> best_weights;
    for (size_t i = 0; i < layouts.size(); ++i) {
      report(fmt::format("choosing kernels, activations {}", layouts[i]),
             kLowering + (kLoading - kLowering) * static_cast<double>(i) / static_cast<double>(layouts.size()));
      FOLIOT_RETURN_IF_ERROR(lower_in(layouts[i]));
      if (layouts.size() == 1 || options_.first_size_only) break;
      FOLIOT_ASSIGN_OR_RETURN(const double slowness, measure_slowness());
      if (best && *best <= slowness) continue;
      best = slowness;
      best_plans = program_.plans;
      best_weights = std::move(weights_);
    }
    if (best) {
      program_.plans = std::move(best_plans);
      weights_ = std::move(best_weights);
      program_.weights_bytes = weights_.size();
    }
    graphs_.clear();
    return {};
  }

  Status lower_in(const std::string& layout) {
    FOLIOT_ASSIGN_OR_RETURN(LoweredProgram lowered, device_.lower(graphs_, layout));
    FOLIOT_CHECK(lowered.plans.size() == graphs_.size());
    weights_ = lay_out_weights(lowered);
    program_.weights_bytes = weights_.size();
    program_.plans = std::move(lowered.plans);
    for (Plan& plan : program_.plans) {
      plan_memory(plan);
      if (plan.workspace_bytes <= options_.workspace_bytes_max) continue;
      return Status::resource_exhausted(
          fmt::format("batch size {} needs {} MiB of workspace, more than the limit of {} MiB; leave out the largest "
                      "batch sizes or buckets in model.toml",
                      plan.batch_size, plan.workspace_bytes >> 20, options_.workspace_bytes_max >> 20));
    }
    return {};
  }

  // The geometric mean of what a small and a large batch of the first bucket take at
  // least, in seconds of processor time. Inputs are zeros.
  Result<double> measure_slowness() {
    const std::unique_ptr<Device> device = device_.another();
    FOLIOT_ASSIGN_OR_RETURN(const std::unique_ptr<ProgramRunner> runner,
                            ProgramRunner::create(*device, program_, weights_));
    double product = 1;
    const auto larger = std::ranges::upper_bound(program_.batch_sizes, kChoosingRowsMax) - program_.batch_sizes.begin();
    for (const size_t plan : {size_t{0}, static_cast<size_t>(std::max<std::ptrdiff_t>(larger, 1) - 1)}) {
      runner->put_input(std::vector<std::byte>(program_.plans[plan].input_bytes));
      Duration shortest = Duration::max();
      Duration spent;
      for (int run = 0; run < kChoosingRuns && spent < kChoosingTime; ++run) {
        const ProcessorTime time;
        FOLIOT_RETURN_IF_ERROR(runner->run_range(plan, {}).status());
        const Duration taken = time.elapsed();
        shortest = std::min(shortest, taken);
        spent += taken;
      }
      product *= shortest.to_seconds();
    }
    return std::sqrt(product);
  }

  Status check_and_measure() {
    report("loading", kLoading);
    FOLIOT_ASSIGN_OR_RETURN(const std::unique_ptr<ProgramRunner> runner,
                            ProgramRunner::create(device_, program_, weights_));
    program_.seed_load = runner->load_duration();
    FOLIOT_RETURN_IF_ERROR(compare_with_float32(*runner));
    std::string difference;
    for (size_t bucket = 0; program_.batching && bucket < program_.buckets.size() && difference.empty(); ++bucket) {
      report("checking batches", kChecking + (kMeasuring - kChecking) * static_cast<double>(bucket) /
                                                 static_cast<double>(program_.buckets.size()));
      FOLIOT_ASSIGN_OR_RETURN(
          difference, check_batches(*runner, program_, bucket, own_batch_size(), example_values_, batch_tolerance()));
    }
    // Comparing batches has run every plan once.
    const bool warm = program_.batching && difference.empty();
    FOLIOT_ASSIGN_OR_RETURN(const std::vector<Duration> durations, measure(*runner, warm));
    FOLIOT_RETURN_IF_ERROR(measure_operators(*runner, durations));
    if (!difference.empty()) FOLIOT_RETURN_IF_ERROR(go_on_without_batching(difference));
    return keep_plans(durations, difference.empty());
  }

  // Of the first plan that was measured.
  Status measure_operators(ProgramRunner& runner, const std::vector<Duration>& durations) {
    const size_t first = static_cast<size_t>(
        std::ranges::find(durations, true, [](Duration duration) { return duration > Duration(); }) -
        durations.begin());
    if (first == durations.size()) return {};
    const Plan& plan = program_.plans[first];
    if (options_.first_size_only) {  // at once, so that long EXECs need not hold up others until all sizes are there
      FOLIOT_ASSIGN_OR_RETURN(const PlanDurations taken, measure_plan(plan, first, runner, 1));
      operator_ends_ = taken.ends();
      return {};
    }
    FOLIOT_ASSIGN_OR_RETURN(const PlanDurations taken, measure_plan(plan, first, runner));
    operator_ends_ = taken.ends();
    // Where all together take no longer than one that is slow, none is.
    if (durations[first] < kSlowOperatorMin) return {};
    FOLIOT_ASSIGN_OR_RETURN(const OperatorRates rates, measure_rates(*device_.another()));
    for (std::string& note : find_slow_operators(plan, taken, rates)) program_.notes.push_back(std::move(note));
    return {};
  }

  // Leaves the plans that were asked for, or where batching failed those of the
  // model's own size, under the durations that were measured for them.
  Status keep_plans(const std::vector<Duration>& durations, bool batches) {
    const std::vector<uint32_t> compiled = std::exchange(program_.batch_sizes, {});
    std::vector<Plan> plans = std::exchange(program_.plans, {});
    const auto is_kept = [&](uint32_t size) {
      if (!program_.batching) return true;
      return batches ? std::ranges::binary_search(asked_sizes_, size) : size == own_batch_size();
    };
    for (size_t i = 0; i < plans.size(); ++i) {
      if (!is_kept(compiled[i % compiled.size()])) continue;
      program_.buckets[i / compiled.size()].seed_exec.push_back(durations[i]);
      program_.plans.push_back(std::move(plans[i]));
    }
    const size_t operators = operator_ends_.size();
    if (std::ranges::all_of(program_.plans, [&](const Plan& plan) { return plan.operators.size() == operators; })) {
      program_.operator_ends = std::move(operator_ends_);
    }
    std::ranges::copy_if(compiled, std::back_inserter(program_.batch_sizes), is_kept);
    if (!program_.batching || batches) return {};
    program_.batching = false;
    program_.batch_sizes = {1};
    for (Plan& plan : program_.plans) plan.batch_size = 1;
    program_.inputs = input_specs(dimensions_, false);
    FOLIOT_ASSIGN_OR_RETURN(program_.outputs, std::move(*whole_outputs_));
    return {};
  }

  // One duration per plan: above the median, since a seed that is too low makes
  // promises that are not kept. `warm`: no plan runs for the first time.
  Result<std::vector<Duration>> measure(ProgramRunner& runner, bool warm) const {
    std::vector<Duration> result;
    Random random(1);
    for (size_t i = 0; i < program_.plans.size(); ++i) {
      const Plan& plan = program_.plans[i];
      if (!is_measured(plan.batch_size)) {
        result.emplace_back();
        continue;
      }
      report(fmt::format("measuring batch {}", plan.batch_size),
             kMeasuring + (1 - kMeasuring) * static_cast<double>(i) / static_cast<double>(program_.plans.size()));
      std::vector<std::byte> input(plan.input_bytes);
      std::vector<std::byte> output(plan.output_bytes);
      for (size_t j = 0; j < plan.inputs.size(); ++j) {
        const Tensor& tensor = plan.tensors[plan.inputs[j]];
        fill_random(random, tensor.type, example_values_[j], plan.batch_size,
                    std::span(input).subspan(tensor.offset, tensor.bytes));
      }
      if (!warm) FOLIOT_RETURN_IF_ERROR(runner.run(i, input, output).status());
      std::vector<Duration> durations;
      Duration spent;
      const uint32_t runs = options_.first_size_only ? kFirstProfileRuns : std::max(options_.profile_runs, 1u);
      while (durations.size() < runs && (durations.empty() || spent < options_.profile_time)) {
        FOLIOT_ASSIGN_OR_RETURN(const Duration duration, runner.run(i, input, output));
        durations.push_back(duration);
        spent += duration;
      }
      std::ranges::sort(durations);
      result.push_back(durations[durations.size() * 3 / 4]);
    }
    return result;
  }

  // The others are only compared with.
  bool is_measured(uint32_t batch_size) const {
    return !program_.batching || batch_size == own_batch_size() || std::ranges::binary_search(asked_sizes_, batch_size);
  }

  // Kernels may differ between batch sizes, and so does then what they round to less
  // than float32: by about what that costs at all.
  double batch_tolerance() const {
    if (!narrowing_error_ && quantizes_) return kQuantizedTolerance;
    return kBatchTolerance + (narrowing_error_ ? std::min(*narrowing_error_, kNarrowTolerance) : 0);
  }

  const CompileOptions& options_;
  const std::vector<uint32_t> asked_sizes_;
  Device& device_;
  const Progress& progress_;
  Narrowing narrowing_;
  std::vector<Example> wide_outputs_;  // empty: nothing is narrowed
  std::optional<double> narrowing_error_;
  bool quantizes_ = false;  // some operator rounds to codes
  Dimensions dimensions_;
  ConstantPool pool_;
  std::vector<Graph> graphs_;  // bucket-major, as program_.plans
  std::vector<OnnxValueInfo> outputs_;
  std::vector<ExampleValues> example_values_;
  // What the outputs are if it turns out that the model cannot be batched, and the error
  // if that is one.
  std::optional<Result<std::vector<TensorSpec>>> whole_outputs_;
  Status if_not_batched_;
  std::vector<double> operator_ends_;  // of the first plan that was measured
  Program program_;
  std::vector<std::byte> weights_;
};

}  // namespace

std::string_view to_string(Precision precision) { return precision == Precision::kBfloat16 ? "bfloat16" : "float32"; }

std::optional<Precision> parse_precision(std::string_view name) {
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    if (name == to_string(precision)) return precision;
  }
  return std::nullopt;
}

std::string compile_fingerprint(const CompileOptions& options) {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}{}{}", kCompilerVersion, options.batch_sizes, options.buckets,
                     options.batch_dimensions, to_string(options.precision), options.page_bytes, options.profile_runs,
                     options.workspace_bytes_max, options.first_size_only ? "\nfirst" : "",
                     fingerprint_of(options.declared));
}

namespace {

Status check_named_after(const std::vector<std::filesystem::path>& files, const std::filesystem::path& model) {
  for (size_t i = 1; i < files.size(); ++i) {
    if (is_named_after(files[i], model)) continue;
    const std::string name = model.stem().string();
    return Status::invalid_argument(
        fmt::format("{}: its external data {} does not begin with '{}'; put both in a folder of their own, as "
                    "{}/model.onnx, and serve that folder",
                    model.string(), files[i].filename().string(), name, name));
  }
  return Status();
}

Result<std::string> key_of(const std::filesystem::path& model, std::span<const std::byte> bytes,
                           const CompileOptions& options, const Device& device) {
  FOLIOT_ASSIGN_OR_RETURN(const auto files, list_onnx_files(model, bytes));
  if (!options.owns_folder) FOLIOT_RETURN_IF_ERROR(check_named_after(files, model));
  StreamHash hash;
  hash.update(bytes);
  for (size_t i = 1; i < files.size(); ++i) FOLIOT_RETURN_IF_ERROR(hash.update_from(files[i]));
  const std::string rest =
      fmt::format("\n{}\n{}\n{}", compile_fingerprint(options), device.kind(), device.fingerprint());
  hash.update(std::as_bytes(std::span(rest)));
  return hash.digest_hex();
}

}  // namespace

Result<std::string> compile_key(const std::filesystem::path& model, const CompileOptions& options,
                                const Device& device) {
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, read_onnx_file(model));
  return key_of(model, bytes, options, device);
}

Result<CompiledProgram> compile(const std::filesystem::path& model, const CompileOptions& options, Device& device,
                                const Progress& progress) {
  FOLIOT_RETURN_IF_ERROR(check_options(options));
  if (progress) progress("reading", 0);
  std::string key;
  Result<OnnxModel> content = Status::internal("not read");
  {
    FOLIOT_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, read_onnx_file(model));
    FOLIOT_ASSIGN_OR_RETURN(key, key_of(model, bytes, options, device));
    content = parse_onnx(bytes, model.parent_path());
  }
  if (!content.ok()) return content.status().with_context(model.string());
  fix_declared_extents(options.declared, options.buckets, *content);
  FOLIOT_RETURN_IF_ERROR(check_declared_tensors(options.declared, *content).with_context(model.string()));
  Result<CompiledProgram> program =
      Compilation(options, device, progress).run(std::move(content).value(), std::move(key));
  if (!program.ok()) return program.status().with_context(model.string());
  return program;
}

}  // namespace foliot
