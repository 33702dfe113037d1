#include "engine/device/conformance/conformance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "engine/device/conformance/block_cases.h"
#include "engine/device/conformance/bump_planner.h"
#include "engine/device/conformance/case_graph_builder.h"
#include "engine/device/conformance/narrow_cases.h"
#include "engine/device/conformance/operator_cases.h"
#include "engine/device/conformance/reference.h"
#include "engine/device/conformance/session.h"
#include "engine/device/conformance/tiny_jpeg.h"
#include "foundation/base/random.h"

namespace foliot {
namespace {

using Outputs = std::vector<std::vector<std::byte>>;

// Small, so that even a test's tensors are larger than a page.
constexpr uint64_t kPageBytes = 4096;
// Enough for a program of networks().
constexpr DeviceMemory kMemory{
    .page_bytes = kPageBytes, .page_count = 64, .io_cache_bytes = 1 << 20, .workspace_bytes = 16 << 20};
constexpr double kTolerance = 2e-4;
// So often lanes run at once, so that they meet in every operator.
constexpr int kTurnsAtOnce = 3;
// Where something is rounded to 8 bits of mantissa on the way.
constexpr double kBfloat16Tolerance = 0.02;

std::vector<Array> random_inputs(const Graph& graph, Random& random, Range range) {
  std::vector<Array> inputs;
  for (ValueIndex input : graph.inputs) {
    const Value& value = graph.values[input];
    inputs.push_back(random_array(value.type, value.shape, random, range));
  }
  return inputs;
}

double tolerance_of(const Graph& graph) {
  for (const Value& value : graph.values)
    if (value.type == DataType::kBfloat16) return kBfloat16Tolerance;
  return kTolerance;
}

void expect_close(const Array& expected, std::span<const std::byte> bytes, double tolerance) {
  const Array actual = from_bytes(expected.type, expected.shape, bytes);
  const bool exact = expected.type != DataType::kFloat32 && expected.type != DataType::kFloat64;
  for (size_t i = 0; i < expected.values.size(); ++i) {
    const double allowed = exact ? 0 : tolerance * (1 + std::abs(expected.values[i]));
    // Written so that NaN fails.
    if (!(std::abs(actual.values[i] - expected.values[i]) <= allowed)) {
      ADD_FAILURE() << "element " << i << " is " << actual.values[i] << " instead of " << expected.values[i];
      return;
    }
  }
}

void expect_reference(const Graph& graph, std::span<const Array> inputs, const Outputs& outputs) {
  const std::vector<Array> expected = evaluate(graph, inputs);
  ASSERT_EQ(outputs.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE("output " + std::to_string(i));
    expect_close(expected[i], outputs[i], tolerance_of(graph));
  }
}

PlannedProgram lower_or_fail(Device& device, std::span<const Graph> graphs, size_t layout = 0) {
  auto program = lower_and_plan(device, graphs, layout);
  if (!program.ok()) {
    ADD_FAILURE() << program.status().message();
    return {};
  }
  return std::move(program).value();
}

// The contract of a lowered plan, as far as it can be seen.
void expect_contract(const Graph& graph, const Plan& plan) {
  ASSERT_EQ(plan.inputs.size(), graph.inputs.size());
  ASSERT_EQ(plan.outputs.size(), graph.outputs.size());
  for (TensorIndex input : plan.inputs) {
    EXPECT_EQ(plan.tensors[input].place, Place::kInput);
    EXPECT_TRUE(plan.tensors[input].layout.empty());
  }
  std::vector<TensorIndex> outputs = plan.outputs;
  for (TensorIndex output : outputs) {
    EXPECT_EQ(plan.tensors[output].place, Place::kOutput);
    EXPECT_TRUE(plan.tensors[output].layout.empty());
    EXPECT_EQ(plan.tensors[output].alias_of, kNoTensor);
  }
  std::sort(outputs.begin(), outputs.end());
  EXPECT_EQ(std::adjacent_find(outputs.begin(), outputs.end()), outputs.end()) << "two outputs share a tensor";
  for (const Operator& operation : plan.operators) {
    EXPECT_FALSE(operation.kernel.empty()) << operation.name;
    EXPECT_FALSE(operation.kernel.starts_with("ref") && operation.kind != OperatorKind::kReorder &&
                 operation.kind != OperatorKind::kTranspose && operation.kind != OperatorKind::kConcat)
        << operation.name << " runs on a reference implementation";
  }
}

// [0, k) and then [k, n) give the same bits as [0, n), for every k.
void expect_any_split(Session& session, std::span<const Array> inputs, const Outputs& whole) {
  const auto count = static_cast<uint32_t>(session.plan(0, 0).operators.size());
  for (uint32_t k = 0; k <= count; ++k) {
    session.write_inputs(0, 0, inputs);
    session.spoil_outputs(0, 0);
    session.run_range(0, 0, {0, k});
    session.run_range(0, 0, {k, count});
    EXPECT_EQ(session.read_outputs(0, 0), whole) << "split at " << k;
  }
}

// The same bits on any lane, whatever runs beside it, and wherever a batch is cut and goes
// on while another runs in another context.
void expect_any_lane(Session& session, std::span<const Array> inputs, std::span<const Array> others) {
  const uint32_t lanes = session.lanes();
  const Outputs whole = session.run(0, 0, inputs, {0, 1}, 0), other = session.run(0, 0, others, {0, 1}, 0);
  const auto count = static_cast<uint32_t>(session.plan(0, 0).operators.size());
  for (uint32_t k = 0; k <= count; ++k) {
    const uint32_t first = k % lanes, second = (k + 1) % lanes;
    session.write_inputs(0, 0, inputs, 1);
    session.spoil_outputs(0, 0, 1);
    session.run_part(0, 0, {.range = {0, k}, .lanes = {first, 1}, .context = 1});
    EXPECT_EQ(session.run(0, 0, others, {first, 1}, 0), other) << "between two parts, cut at " << k;
    session.run_part(0, 0, {.range = {k, count}, .lanes = {second, 1}, .context = 1});
    EXPECT_EQ(session.read_outputs(0, 0, 1), whole) << "cut at " << k;
  }
  std::vector<Outputs> at_once(lanes);
  {
    std::vector<std::jthread> threads;
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      threads.emplace_back([&, lane] {
        for (int turn = 0; turn < kTurnsAtOnce; ++turn) {
          at_once[lane] = session.run(0, 0, lane % 2 == 0 ? inputs : others, {lane, 1}, lane);
        }
      });
    }
  }
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    EXPECT_EQ(at_once[lane], lane % 2 == 0 ? whole : other) << "at once, lane " << lane;
  }
}

void check_in_layout(const DeviceFactory& make_device, const std::vector<Graph>& graphs, size_t layout, Range range,
                     Random random) {
  const std::unique_ptr<Device> device = make_device();
  SCOPED_TRACE("activations " + device->layouts(graphs)[layout]);
  const PlannedProgram program = lower_or_fail(*device, graphs, layout);
  if (testing::Test::HasFailure()) return;
  expect_contract(graphs[0], program.plans[0]);

  Session session(*device, {program}, kPageBytes);
  session.load(0, 0);
  const std::vector<Array> inputs = random_inputs(graphs[0], random, range);
  const Outputs whole = session.run(0, 0, inputs);
  expect_reference(graphs[0], inputs, whole);
  expect_any_split(session, inputs, whole);
  if (session.lanes() > 1) {
    expect_reference(graphs[0], inputs, session.run(0, 0, inputs, {0, 1}, 0));
    expect_any_lane(session, inputs, random_inputs(graphs[0], random, range));
  }

  session.executable(0).unload();
  session.load(0, static_cast<PageIndex>(2 * session.pages(0) - 1), true);
  EXPECT_EQ(session.run(0, 0, inputs), whole) << "on other pages";
}

void check_operator(const DeviceFactory& make_device, const OperatorCase& operation) {
  Random random(7);
  CaseGraphBuilder builder;
  operation.build(builder, random);
  const std::vector<Graph> graphs{builder.graph()};
  const size_t layouts = make_device()->layouts(graphs).size();
  for (size_t layout = 0; layout < layouts; ++layout)
    check_in_layout(make_device, graphs, layout, operation.range, random);
}

// What a device does not claim it refuses, naming the node.
void check_refusal(const DeviceFactory& make_device, const OperatorCase& operation) {
  Random random(7);
  CaseGraphBuilder builder;
  operation.build(builder, random);
  const std::vector<Graph> graphs{builder.graph()};
  const std::unique_ptr<Device> device = make_device();
  const auto lowered = device->lower(graphs, device->layouts(graphs).front());
  ASSERT_FALSE(lowered.ok()) << "it is not claimed, and works";
  EXPECT_EQ(lowered.status().code(), StatusCode::kUnimplemented);
  EXPECT_NE(lowered.status().message().find("node"), std::string::npos) << lowered.status().message();
}

// A small network whose batch is free: the same constants for every batch size.
Graph network(uint32_t batch, const std::vector<Array>& constants, const Graph* like) {
  CaseGraphBuilder builder(batch);
  const auto constant = [&](size_t i) {
    // Constants follow the input in the order in which they were added.
    return like == nullptr ? builder.constant(constants[i]) : builder.constant(like->values[1 + i]);
  };
  const int64_t n = batch;
  const ValueIndex x = builder.input({n, 3, 12, 12});
  const ValueIndex w1 = constant(0), w2 = constant(1), w3 = constant(2), b3 = constant(3);
  const AttributeList same{{"strides", std::vector<int64_t>{1, 1}},
                           {"dilations", std::vector<int64_t>{1, 1}},
                           {"pads", std::vector<int64_t>{1, 1, 1, 1}},
                           {"groups", int64_t{1}}};
  const ValueIndex a = builder.node(OperatorKind::kConvolution, {x, w1}, {n, 32, 12, 12}, same, DataType::kFloat32,
                                    {activation("relu")});
  const ValueIndex b = builder.node(OperatorKind::kConvolution, {a, w2, kNoValue, a}, {n, 32, 12, 12}, same,
                                    DataType::kFloat32, {combination("add", 3), activation("relu")});
  const ValueIndex pool =
      builder.node(OperatorKind::kReduce, {b}, {n, 32, 1, 1},
                   {{"function", Function::kMean}, {"axes", std::vector<int64_t>{2, 3}}, {"keep_dims", int64_t{1}}});
  const ValueIndex flat = builder.node(OperatorKind::kReshape, {pool}, {n, 32});
  const ValueIndex y = builder.node(OperatorKind::kMatMul, {flat, w3, b3}, {n, 10},
                                    {{"transpose_a", int64_t{0}}, {"transpose_b", int64_t{1}}, {"alpha", 1.0}});
  builder.output(builder.node(OperatorKind::kSoftmax, {y}, {n, 10}, {{"axis", int64_t{1}}, {"log", int64_t{0}}}));
  return builder.graph();
}

std::vector<Graph> networks(const std::vector<uint32_t>& batches, uint64_t seed = 11) {
  Random random(seed);
  std::vector<Array> constants;
  for (const Shape& shape : {Shape{32, 3, 3, 3}, Shape{32, 32, 3, 3}, Shape{10, 32}, Shape{10}})
    constants.push_back(random_array(DataType::kFloat32, shape, random, {-0.3, 0.3}));
  std::vector<Graph> graphs;
  graphs.reserve(batches.size());
  for (uint32_t batch : batches) graphs.push_back(network(batch, constants, graphs.empty() ? nullptr : &graphs[0]));
  return graphs;
}

uint64_t sum(const std::vector<uint64_t>& numbers) {
  uint64_t total = 0;
  for (uint64_t number : numbers) total += number;
  return total;
}

void check_one_packing(const DeviceFactory& make_device) {
  const std::vector<Graph> graphs = networks({1, 2, 4, 8, 16});
  const std::unique_ptr<Device> device = make_device();
  const PlannedProgram program = lower_or_fail(*device, graphs);
  ASSERT_EQ(program.plans.size(), graphs.size());
  const PlannedProgram largest = lower_or_fail(*device, std::span(graphs).last(1));
  EXPECT_EQ(sum(program.constant_bytes), sum(largest.constant_bytes)) << "a constant is packed more than once";

  Session session(*device, {program}, kPageBytes);
  session.load(0, 0);
  Random random(3);
  for (uint32_t plan = 0; plan < graphs.size(); ++plan) {
    SCOPED_TRACE("batch size " + std::to_string(graphs[plan].batch_size));
    EXPECT_EQ(session.plan(0, plan).batch_size, graphs[plan].batch_size);
    const std::vector<Array> inputs = random_inputs(graphs[plan], random, {});
    expect_reference(graphs[plan], inputs, session.run(0, plan, inputs));
  }
}

void check_neighbours(const DeviceFactory& make_device) {
  const std::vector<Graph> graphs = networks({4});
  const std::unique_ptr<Device> device = make_device();
  Session session(*device, {lower_or_fail(*device, graphs)}, kPageBytes);
  session.load(0, 0);
  Random random(5);
  std::vector<Array> inputs = random_inputs(graphs[0], random, {});
  const Outputs before = session.run(0, 0, inputs);
  // Row 2 stays, the others change.
  const size_t row = inputs[0].values.size() / 4;
  for (size_t i = 0; i < inputs[0].values.size(); ++i)
    if (i / row != 2) inputs[0].values[i] = 100 * random.uniform();
  const Outputs after = session.run(0, 0, inputs);
  const auto third = [](const Outputs& outputs) {
    return std::span(outputs[0]).subspan(outputs[0].size() / 2, outputs[0].size() / 4);
  };
  EXPECT_TRUE(std::ranges::equal(third(before), third(after)));
  EXPECT_NE(before, after);
}

void check_shared_page_cache(const DeviceFactory& make_device) {
  const std::vector<Graph> first = networks({1}, 21), second = networks({1}, 22);
  const std::unique_ptr<Device> device = make_device();
  std::vector<PlannedProgram> programs;
  programs.push_back(lower_or_fail(*device, first));
  programs.push_back(lower_or_fail(*device, second));
  Session session(*device, std::move(programs), kPageBytes);
  Random random(9);
  const std::vector<Array> inputs = random_inputs(first[0], random, {});
  session.load(0, 0);
  const Outputs one = session.run(0, 0, inputs);
  session.executable(0).unload();
  session.load(1, 0);
  const Outputs other = session.run(1, 0, inputs);
  expect_reference(first[0], inputs, one);
  expect_reference(second[0], inputs, other);
  // Both at a time, then each again on the other's pages.
  session.load(0, static_cast<PageIndex>(session.pages(1)));
  EXPECT_EQ(session.run(0, 0, inputs), one);
  EXPECT_EQ(session.run(1, 0, inputs), other);
  session.executable(0).unload();
  session.executable(1).unload();
  session.load(0, static_cast<PageIndex>(session.pages(0) - 1), true);
  EXPECT_EQ(session.run(0, 0, inputs), one);
}

void check_unloaded(const DeviceFactory& make_device) {
  const std::vector<Graph> graphs = networks({1});
  const std::unique_ptr<Device> device = make_device();
  Session session(*device, {lower_or_fail(*device, graphs)}, kPageBytes);
  EXPECT_DEATH(session.run_range(0, 0, {}), "loaded");
  session.load(0, 0);
  session.executable(0).unload();
  EXPECT_DEATH(session.run_range(0, 0, {}), "loaded");
}

// Plans are prepared one by one, each runs from then on. One that cannot be prepared
// gives an error that names it, and does not affect the others.
void check_preparing(const DeviceFactory& make_device) {
  const std::unique_ptr<Device> device = make_device();
  PlannedProgram program = lower_or_fail(*device, networks({1, 2, 4}));
  program.plans[1].operators.back().kernel = "foliot:nonsense";
  ASSERT_TRUE(device->allocate(kMemory).ok());
  const auto executable = device->preload(program.plans, memory_weights(program.weights)).value();
  std::vector<PageIndex> pages((program.weights.size() + kPageBytes - 1) / kPageBytes);
  std::iota(pages.begin(), pages.end(), PageIndex{0});
  ASSERT_TRUE(executable->load(pages).ok());
  const LaneInterval lanes{0, device->lanes()};
  const auto prepare = [&](uint32_t plan) { return executable->prepare(plan, lanes.count); };
  const auto run = [&](uint32_t plan, LaneInterval on) {
    return executable->run({.plan = plan, .part = {.lanes = on}, .output_offset = kMemory.io_cache_bytes / 2});
  };
  EXPECT_DEATH((void)run(0, lanes), "ready");
  EXPECT_TRUE(prepare(0).ok());
  EXPECT_TRUE(run(0, lanes).ok());
  EXPECT_DEATH((void)run(2, lanes), "ready");
  const Status damaged = prepare(1);
  EXPECT_NE(damaged.message().find("batch size 2"), std::string::npos) << damaged.message();
  EXPECT_DEATH((void)run(1, lanes), "ready");
  EXPECT_TRUE(prepare(2).ok());
  EXPECT_TRUE(prepare(2).ok());
  EXPECT_TRUE(run(0, lanes).ok());
  EXPECT_TRUE(run(2, lanes).ok());
  if (lanes.count == 1) return;
  EXPECT_DEATH((void)run(0, {0, 1}), "ready") << "on one lane";
  EXPECT_TRUE(executable->prepare(0, 1).ok());
  EXPECT_TRUE(run(0, {lanes.count - 1, 1}).ok());
}

// A row whose input an operator refuses: noted, added to what is, and of no effect on others.
void check_refused_rows(const DeviceFactory& make_device) {
  constexpr int64_t kRows = 3, kBytes = 512, kPixels = 4 * 4 * 3;
  const Graph graph = decoding_graph(kRows, kBytes);
  const std::unique_ptr<Device> device = make_device();
  Session session(*device, {lower_or_fail(*device, std::vector<Graph>{graph})}, kPageBytes);
  session.load(0, 0);
  const auto run = [&](RowSet damaged) {
    Array input{DataType::kUint8, {kRows, kBytes}, std::vector<double>(kRows * kBytes)};
    for (int64_t row = 0; row < kRows; ++row) {
      std::copy(kTinyJpeg.begin(), kTinyJpeg.end(), input.values.begin() + row * kBytes);
      if (damaged[static_cast<size_t>(row)]) input.values[static_cast<size_t>(row * kBytes)] = 1;
    }
    return session.run(0, 0, std::vector<Array>{input})[0];
  };
  const std::vector<std::byte> all = run({});
  EXPECT_TRUE(session.failed_rows().none());
  const std::vector<std::byte> some = run(0b101);
  EXPECT_EQ(session.failed_rows(), RowSet(0b101));
  for (int64_t row = 0; row < kRows; ++row) {
    const auto first = static_cast<size_t>(row * kPixels);
    for (size_t i = first; i < first + kPixels; ++i) ASSERT_EQ(some[i], row == 1 ? all[i] : std::byte{0}) << i;
  }
  session.failed_rows().set(1);
  session.run_range(0, 0, {});
  EXPECT_EQ(session.failed_rows(), RowSet(0b111)) << "added to what it was";
  EXPECT_EQ(run({}), all);
  EXPECT_TRUE(session.failed_rows().none());
}

// Lanes and contexts that there are not.
void check_bounds(const DeviceFactory& make_device) {
  const std::unique_ptr<Device> device = make_device();
  Session session(*device, {lower_or_fail(*device, networks({1}))}, kPageBytes);
  session.load(0, 0);
  EXPECT_DEATH(session.run_part(0, 0, {.lanes = {device->lanes(), 1}}), "lanes");
  EXPECT_DEATH(session.run_part(0, 0, {.lanes = {0, 2 * device->lanes()}}), "lanes");
  EXPECT_DEATH(session.run_part(0, 0, {.lanes = {0, device->lanes()}, .context = device->lanes() + 1}), "context");
}

// Two programs on lanes of their own while a third is loaded and unloaded.
void check_programs_at_once(const DeviceFactory& make_device) {
  const std::unique_ptr<Device> device = make_device();
  if (device->lanes() < 2) return;
  const std::vector<Graph> first = networks({4}, 21), second = networks({4}, 22);
  std::vector<PlannedProgram> programs;
  for (const auto* graphs : {&first, &second, &first}) programs.push_back(lower_or_fail(*device, *graphs));
  Session session(*device, std::move(programs), kPageBytes);
  const auto pages = [&](size_t program) { return static_cast<PageIndex>(session.pages(program)); };
  Random random(9);
  const std::vector<Array> inputs = random_inputs(first[0], random, {});
  session.load(0, 0);
  session.load(1, pages(0));
  const std::vector<Outputs> alone{session.run(0, 0, inputs, {0, 1}, 0), session.run(1, 0, inputs, {0, 1}, 0)};
  std::vector<Outputs> beside(2);
  {
    std::vector<std::jthread> threads;
    for (uint32_t lane = 0; lane < 2; ++lane) {
      threads.emplace_back([&, lane] {
        for (int turn = 0; turn < 20; ++turn) {
          beside[lane] = session.run(lane, 0, inputs, {lane, 1}, lane);
          if (beside[lane] != alone[lane]) return;
        }
      });
    }
    for (int turn = 0; turn < 20; ++turn) {
      session.load(2, pages(0) + pages(1));
      session.executable(2).unload();
    }
  }
  EXPECT_EQ(beside, alone);
}

void check_deterministic_lowering(const DeviceFactory& make_device) {
  const std::vector<Graph> graphs = networks({1, 8});
  const std::unique_ptr<Device> device = make_device(), other = make_device();
  const PlannedProgram a = lower_or_fail(*device, graphs), b = lower_or_fail(*other, graphs);
  EXPECT_EQ(device->fingerprint(), other->fingerprint());
  EXPECT_EQ(a.weights, b.weights);
  ASSERT_EQ(a.plans.size(), b.plans.size());
  for (size_t i = 0; i < a.plans.size(); ++i) {
    ASSERT_EQ(a.plans[i].operators.size(), b.plans[i].operators.size());
    for (size_t j = 0; j < a.plans[i].operators.size(); ++j)
      EXPECT_EQ(a.plans[i].operators[j].kernel, b.plans[i].operators[j].kernel);
  }
}

// Damage done to a plan after lowering must be noticed, whatever it is.
void check_damaged_plans(const DeviceFactory& make_device) {
  using Damage = std::pair<const char*, void (*)(Plan&)>;
  const std::vector<Damage> damages{
      {"input index", [](Plan& plan) { plan.operators[0].inputs[0] = 1'000'000; }},
      {"output index", [](Plan& plan) { plan.operators.back().outputs[0] = 1'000'000; }},
      {"no output", [](Plan& plan) { plan.operators[0].outputs.clear(); }},
      {"kind", [](Plan& plan) { plan.operators[0].kind = static_cast<OperatorKind>(999); }},
      {"kernel", [](Plan& plan) { plan.operators[0].kernel = "foliot:nonsense"; }},
      {"attributes",
       [](Plan& plan) {
         for (Operator& operation : plan.operators) operation.attributes = {};
       }},
      {"size",
       [](Plan& plan) {
         for (Tensor& tensor : plan.tensors) tensor.bytes /= 2;
       }},
      {"offset", [](Plan& plan) { plan.tensors.back().offset = uint64_t{1} << 60; }},
      {"layout",
       [](Plan& plan) {
         for (Tensor& tensor : plan.tensors) tensor.layout += "x";
       }},
      {"shape",
       [](Plan& plan) {
         for (Tensor& tensor : plan.tensors)
           for (int64_t& extent : tensor.shape) extent = -1;
       }},
      {"type", [](Plan& plan) { plan.tensors[0].type = static_cast<DataType>(200); }},
      {"result shape",
       [](Plan& plan) {
         for (int64_t& extent : plan.tensors[plan.operators.back().outputs[0]].shape) extent = 1;
       }},
      {"post-operation",
       [](Plan& plan) {
         for (Operator& operation : plan.operators)
           for (PostOperation& post : operation.post_operations)
             post.input = 77, post.kind = PostOperation::Kind::kBinary;
       }},
  };
  const std::unique_ptr<Device> device = make_device();
  const PlannedProgram sound = lower_or_fail(*device, networks({1}));
  ASSERT_TRUE(device->allocate(kMemory).ok());
  for (const auto& [name, damage] : damages) {
    std::vector<Plan> plans = sound.plans;
    damage(plans[0]);
    const auto executable = device->preload(plans, memory_weights(sound.weights));
    EXPECT_FALSE(executable.ok() && executable.value()->prepare(0, device->lanes()).ok()) << name;
  }
  std::vector<Plan> plans = sound.plans;
  plans[0].workspace_bytes = uint64_t{1} << 40;
  const auto executable = device->preload(plans, memory_weights(sound.weights));
  ASSERT_FALSE(executable.ok());
  EXPECT_EQ(executable.status().code(), StatusCode::kResourceExhausted);
}

class ConformanceTest : public testing::Test {
 public:
  explicit ConformanceTest(std::function<void()> body) : body_(std::move(body)) {}
  void TestBody() override { body_(); }

 private:
  std::function<void()> body_;
};

void register_one(const std::string& suite, const std::string& name, std::function<void()> body) {
  testing::RegisterTest(suite.c_str(), name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                        [body = std::move(body)]() -> testing::Test* { return new ConformanceTest(body); });
}

}  // namespace

int register_conformance(const std::string& name, const DeviceFactory& make_device, const Unclaimed& unclaimed) {
  const std::string suite = name + "Conformance";
  int count = 0;
  const auto add = [&](const std::string& test, std::function<void()> body) {
    register_one(suite, test, std::move(body));
    ++count;
  };
  using Check = void (*)(const DeviceFactory&);
  const std::vector<std::pair<const char*, Check>> checks{{"one_packing_for_all_batch_sizes", check_one_packing},
                                                          {"rows_ignore_their_neighbours", check_neighbours},
                                                          {"programs_share_the_page_cache", check_shared_page_cache},
                                                          {"running_unloaded_is_a_bug", check_unloaded},
                                                          {"plans_are_prepared_one_by_one", check_preparing},
                                                          {"lanes_and_contexts_have_bounds", check_bounds},
                                                          {"refused_rows_are_noted", check_refused_rows},
                                                          {"programs_run_at_once", check_programs_at_once},
                                                          {"lowering_is_deterministic", check_deterministic_lowering},
                                                          {"damaged_plans_are_refused", check_damaged_plans}};
  const auto claims = [&](const std::string& test) { return !unclaimed || !unclaimed(test); };
  for (const auto& [test, check] : checks)
    if (claims(test)) add(test, [check = check, make_device] { check(make_device); });
  for (const auto& cases : {operator_cases(), narrow_cases(), block_cases()}) {
    for (const OperatorCase& operation : cases) {
      const auto check = claims(operation.name) ? check_operator : check_refusal;
      add(operation.name, [=] { check(make_device, operation); });
    }
  }
  return count;
}

}  // namespace foliot
