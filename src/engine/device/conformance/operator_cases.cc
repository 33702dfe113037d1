#include "engine/device/conformance/operator_cases.h"

#include <fmt/format.h>

#include <cstddef>
#include <limits>
#include <span>
#include <tuple>

#include "engine/device/tree_node.h"

namespace foliot {
namespace {

using Kind = OperatorKind;
using Ints = std::vector<int64_t>;
using Reals = std::vector<double>;

constexpr auto kFloat = DataType::kFloat32;

Attribute integer(int64_t value) { return value; }
Attribute text(const char* value) { return std::string(value); }
Attribute named(const char* function) { return parse_function(function).value(); }

class Cases {
 public:
  std::vector<OperatorCase> take() { return std::move(cases_); }

  template <typename Build>
  void add(std::string name, Build build, Range range = {}) {
    cases_.push_back({std::move(name), build, range});
  }

  // A graph of one node over inputs of these shapes.
  void node(std::string name, Kind kind, const std::vector<Shape>& inputs, const Shape& output,
            const std::vector<std::pair<const char*, Attribute>>& attributes, Range range = {}, DataType type = kFloat,
            DataType result = kFloat) {
    add(
        std::move(name),
        [=](CaseGraphBuilder& graph, Random&) {
          std::vector<ValueIndex> values;
          values.reserve(inputs.size());
          for (const Shape& shape : inputs) values.push_back(graph.input(shape, type));
          const ValueIndex y = graph.node(kind, values, output, {}, result);
          for (const auto& [key, value] : attributes) graph.set(key, value);
          graph.output(y);
        },
        range);
  }

 private:
  std::vector<OperatorCase> cases_;
};

ValueIndex weights(CaseGraphBuilder& graph, Random& random, const Shape& shape) {
  return graph.constant(random_array(kFloat, shape, random, {-0.5, 0.5}));
}

struct Convolution {
  Shape x, w;
  Ints strides, dilations, pads;
  int64_t groups = 1;
};

ValueIndex convolve(CaseGraphBuilder& graph, const Convolution& of, std::vector<ValueIndex> inputs, const Shape& y,
                    std::vector<PostOperation> post = {}, Kind kind = Kind::kConvolution) {
  return graph.node(kind, std::move(inputs), y,
                    {{"strides", of.strides}, {"dilations", of.dilations}, {"pads", of.pads}, {"groups", of.groups}},
                    kFloat, std::move(post));
}

void add_convolution(Cases& cases, const std::string& name, const Convolution& of, const Shape& y,
                     Kind kind = Kind::kConvolution) {
  cases.add(name, [=](CaseGraphBuilder& graph, Random& random) {
    const ValueIndex x = graph.input(of.x);
    const ValueIndex w = weights(graph, random, of.w), bias = weights(graph, random, {y[1]});
    graph.output(convolve(graph, of, {x, w, bias}, y, {}, kind));
    graph.output(convolve(graph, of, {x, w}, y, {activation("relu")}, kind));
  });
}

void add_convolutions(Cases& cases) {
  add_convolution(cases, "convolution_1x1", {{2, 16, 5, 5}, {32, 16, 1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
                  {2, 32, 5, 5});
  add_convolution(cases, "convolution_3_channels", {{1, 3, 9, 9}, {16, 3, 3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}},
                  {1, 16, 5, 5});
  add_convolution(cases, "convolution_odd_channels", {{1, 5, 7, 6}, {7, 5, 3, 2}, {1, 2}, {1, 1}, {1, 0, 0, 1}},
                  {1, 7, 6, 3});
  add_convolution(cases, "convolution_depthwise", {{2, 24, 6, 6}, {24, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 24},
                  {2, 24, 6, 6});
  add_convolution(cases, "convolution_groups", {{1, 8, 6, 6}, {16, 4, 3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 2},
                  {1, 16, 6, 6});
  add_convolution(cases, "convolution_dilated", {{1, 16, 9, 9}, {16, 16, 3, 3}, {1, 1}, {2, 2}, {2, 2, 2, 2}},
                  {1, 16, 9, 9});
  add_convolution(cases, "convolution_1d", {{2, 8, 12}, {16, 8, 3}, {1}, {1}, {1, 1}}, {2, 16, 12});
  add_convolution(cases, "convolution_3d", {{1, 4, 5, 6, 5}, {8, 4, 3, 3, 3}, {1, 1, 2}, {1, 1, 1}, {1, 1, 1, 1, 1, 1}},
                  {1, 8, 5, 6, 3});
  add_convolution(cases, "convolution_unused_rows", {{1, 8, 8, 8}, {8, 8, 3, 3}, {2, 2}, {1, 1}, {0, 0, 0, 0}},
                  {1, 8, 3, 3});
  constexpr Kind kTransposed = Kind::kConvolutionTranspose;
  add_convolution(cases, "transposed_2x2", {{1, 8, 4, 4}, {8, 6, 2, 2}, {2, 2}, {1, 1}, {0, 0, 0, 0}}, {1, 6, 8, 8},
                  kTransposed);
  add_convolution(cases, "transposed_output_padding", {{2, 4, 5, 5}, {4, 8, 3, 3}, {2, 2}, {1, 1}, {1, 1, 0, 0}},
                  {2, 8, 10, 10}, kTransposed);
  add_convolution(cases, "transposed_groups", {{1, 8, 4, 4}, {8, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 2},
                  {1, 6, 4, 4}, kTransposed);
  add_convolution(cases, "transposed_1d", {{1, 6, 7}, {6, 4, 4}, {2}, {1}, {1, 1}}, {1, 4, 14}, kTransposed);
  cases.add("convolution_weights_at_run_time", [](CaseGraphBuilder& graph, Random&) {
    const ValueIndex x = graph.input({1, 16, 5, 5}), w = graph.input({16, 16, 3, 3});
    graph.output(convolve(graph, {{}, {}, {1, 1}, {1, 1}, {1, 1, 1, 1}}, {x, w}, {1, 16, 5, 5}));
  });
}

// Residuals and other operands after a convolution.
void add_convolution_fusions(Cases& cases) {
  const Convolution same{{1, 16, 6, 6}, {16, 16, 3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}};
  const Shape shape{1, 16, 6, 6};
  cases.add("residual_block", [=](CaseGraphBuilder& graph, Random& random) {
    const ValueIndex x = graph.input(shape);
    const ValueIndex stem = convolve(graph, same, {x, weights(graph, random, same.w)}, shape, {activation("relu")});
    const ValueIndex inner = convolve(graph, same, {stem, weights(graph, random, same.w)}, shape, {activation("relu")});
    const ValueIndex sum =
        convolve(graph, same, {inner, weights(graph, random, same.w), weights(graph, random, {16}), stem}, shape,
                 {combination("add", 3), activation("relu")});
    graph.output(convolve(graph, same, {sum, weights(graph, random, same.w)}, shape));
  });
  cases.add("residual_used_again", [=](CaseGraphBuilder& graph, Random& random) {
    const ValueIndex x = graph.input(shape);
    const ValueIndex stem = convolve(graph, same, {x, weights(graph, random, same.w)}, shape);
    const ValueIndex sum =
        convolve(graph, same, {stem, weights(graph, random, same.w), kNoValue, stem}, shape, {combination("add", 3)});
    graph.output(graph.node(Kind::kBinary, {sum, stem}, shape, {{"function", Function::kMul}}));
    graph.output(stem);
  });
  cases.add("residual_is_input", [=](CaseGraphBuilder& graph, Random& random) {
    const ValueIndex x = graph.input(shape);
    graph.output(convolve(graph, same, {x, weights(graph, random, same.w), kNoValue, x}, shape,
                          {combination("add", 3), activation("clip", 0, 0.5)}));
  });
  cases.add("per_channel_operands", [=](CaseGraphBuilder& graph, Random& random) {
    const ValueIndex x = graph.input(shape), scalar = graph.input({});
    graph.output(convolve(graph, same,
                          {x, weights(graph, random, same.w), kNoValue, weights(graph, random, {16, 1, 1}), scalar},
                          shape, {activation("sigmoid"), combination("mul", 3), combination("sub", 4)}));
  });
  cases.add("unusual_post_operations",
            [=](CaseGraphBuilder& graph, Random& random) {
              const ValueIndex x = graph.input(shape), row = graph.input({6});
              graph.output(convolve(graph, same, {x, weights(graph, random, same.w), kNoValue, row, x}, shape,
                                    {activation("sin"), combination("div", 3), combination("max", 4),
                                     activation("hard_sigmoid", 0.2, 0.5)}));
            },
            {0.5, 1.5});
  // Dilated so far that only the slowest kernels take it, in a batch.
  cases.add("per_channel_operands_dilated", [=](CaseGraphBuilder& graph, Random& random) {
    const Convolution far{{3, 32, 100}, {32, 32, 2}, {1}, {8}, {8, 0}};
    const ValueIndex x = graph.input(far.x), w = weights(graph, random, far.w);
    graph.output(convolve(graph, far, {x, w, kNoValue, weights(graph, random, {32, 1})}, far.x,
                          {activation("sigmoid"), combination("mul", 3)}));
  });
  cases.add("full_operand_dilated", [=](CaseGraphBuilder& graph, Random& random) {
    const Convolution far{{3, 32, 100}, {32, 32, 2}, {1}, {8}, {8, 0}};
    const ValueIndex x = graph.input(far.x), w = weights(graph, random, far.w);
    const ValueIndex gate = convolve(graph, far, {x, weights(graph, random, far.w)}, far.x, {activation("tanh")});
    graph.output(convolve(graph, far, {x, w, kNoValue, gate}, far.x, {activation("sigmoid"), combination("mul", 3)}));
  });
  cases.add("squeeze_and_excite", [=](CaseGraphBuilder& graph, Random& random) {
    const ValueIndex x = graph.input(shape);
    const ValueIndex stem = convolve(graph, same, {x, weights(graph, random, same.w)}, shape);
    const ValueIndex mean =
        graph.node(Kind::kReduce, {stem}, {1, 16, 1, 1},
                   {{"function", Function::kMean}, {"axes", Ints{2, 3}}, {"keep_dims", integer(1)}});
    const Convolution one{{1, 16, 1, 1}, {16, 16, 1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}};
    const ValueIndex gate =
        convolve(graph, one, {mean, weights(graph, random, one.w)}, {1, 16, 1, 1}, {activation("sigmoid")});
    graph.output(graph.node(Kind::kBinary, {stem, gate}, shape, {{"function", Function::kMul}}));
  });
}

// Of two rows, and with channels that fill no block.
void add_joined_images(Cases& cases) {
  for (const int64_t channels : {32, 24})
    cases.add(
        "resized_and_joined_images_" + std::to_string(channels), [channels](CaseGraphBuilder& graph, Random& random) {
          const Convolution conv{{2, 32, 6, 6}, {channels, 32, 3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}};
          const Shape shape{2, channels, 6, 6}, large{2, channels, 12, 9};
          const ValueIndex a = convolve(graph, conv, {graph.input(conv.x), weights(graph, random, conv.w)}, shape);
          std::vector<ValueIndex> parts{graph.input({2, 3, 12, 9})};
          for (const char* mode : {"nearest", "linear"})
            parts.push_back(graph.node(Kind::kResize, {a}, large,
                                       {{"mode", text(mode)},
                                        {"coordinates", text("half_pixel")},
                                        {"nearest", text("floor")},
                                        {"scales", Reals{1, 1, 2, 1.5}}}));
          const Shape joined{2, 3 + 2 * channels, 12, 9};
          graph.output(graph.node(Kind::kConcat, parts, joined, {{"axis", integer(1)}}));
          parts.erase(parts.begin());
          graph.output(graph.node(Kind::kConcat, parts, {2, 2 * channels, 12, 9}, {{"axis", integer(1)}}));
        });
}

void add_layout_meetings(Cases& cases) {
  const Convolution conv{{1, 16, 6, 6}, {32, 16, 3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}};
  const Shape shape{1, 32, 6, 6};
  cases.add("flatten_after_global_pool", [=](CaseGraphBuilder& graph, Random& random) {
    const ValueIndex x = graph.input(conv.x);
    const ValueIndex y = convolve(graph, conv, {x, weights(graph, random, conv.w)}, shape, {activation("relu")});
    const ValueIndex pool = graph.node(Kind::kAveragePool, {y}, {1, 32, 1, 1},
                                       {{"kernel", Ints{6, 6}},
                                        {"strides", Ints{1, 1}},
                                        {"dilations", Ints{1, 1}},
                                        {"pads", Ints{0, 0, 0, 0}},
                                        {"count_include_pad", integer(0)}});
    const ValueIndex flat = graph.node(Kind::kReshape, {pool}, {1, 32});
    graph.output(graph.node(Kind::kMatMul, {flat, weights(graph, random, {10, 32}), weights(graph, random, {10})},
                            {1, 10}, {{"transpose_a", integer(0)}, {"transpose_b", integer(1)}, {"alpha", 1.0}}));
    graph.output(flat);
  });
  cases.add("blocked_operands_meet", [=](CaseGraphBuilder& graph, Random& random) {
    const ValueIndex x = graph.input(conv.x), dense = graph.input(shape);
    const ValueIndex a = convolve(graph, conv, {x, weights(graph, random, conv.w)}, shape);
    const ValueIndex sum = graph.node(Kind::kBinary, {dense, a}, shape, {{"function", Function::kSub}});
    const ValueIndex joined = graph.node(Kind::kConcat, {sum, a}, {1, 64, 6, 6}, {{"axis", integer(1)}});
    const ValueIndex affine =
        graph.node(Kind::kAffine, {joined, weights(graph, random, {64}), weights(graph, random, {64})}, {1, 64, 6, 6},
                   {}, kFloat, {activation("relu")});
    const ValueIndex turned =
        graph.node(Kind::kTranspose, {affine}, {1, 6, 6, 64}, {{"permutation", Ints{0, 2, 3, 1}}});
    graph.output(turned);
    graph.output(graph.node(Kind::kReshape, {affine}, {64, 36}));
    graph.output(graph.node(Kind::kSoftmax, {affine}, {1, 64, 6, 6}, {{"axis", integer(1)}, {"log", integer(0)}}));
    graph.output(graph.node(Kind::kUnary, {affine}, {1, 64, 6, 6}, {{"function", Function::kFloor}}));
  });
  cases.add("views_of_views", [](CaseGraphBuilder& graph, Random&) {
    const ValueIndex x = graph.input({4, 6, 8});
    const ValueIndex doubled =
        graph.node(Kind::kUnary, {x}, {4, 6, 8}, {{"function", Function::kLinear}, {"alpha", 2.0}, {"beta", 1.0}});
    const ValueIndex part =
        graph.node(Kind::kSlice, {doubled}, {2, 6, 8}, {{"starts", Ints{1, 0, 0}}, {"steps", Ints{1, 1, 1}}});
    const ValueIndex flat = graph.node(Kind::kReshape, {part}, {12, 8});
    const ValueIndex row = graph.node(Kind::kSlice, {flat}, {1, 8}, {{"starts", Ints{3, 0}}, {"steps", Ints{1, 1}}});
    graph.output(graph.node(Kind::kUnary, {row}, {1, 8}, {{"function", Function::kRelu}}));
    graph.output(graph.node(Kind::kUnary, {flat}, {12, 8}, {{"function", Function::kNeg}}));
    graph.output(doubled);
    graph.output(flat);
  });
  cases.add("outputs_that_are_not_results", [](CaseGraphBuilder& graph, Random& random) {
    const ValueIndex x = graph.input({2, 3}), constant = weights(graph, random, {4});
    const ValueIndex y = graph.node(Kind::kUnary, {x}, {2, 3}, {{"function", Function::kAbs}});
    for (ValueIndex value : {x, constant, y, y}) graph.output(value);
  });
  cases.add("chain_in_place", [](CaseGraphBuilder& graph, Random&) {
    ValueIndex x = graph.input({3, 5});
    for (const char* function : {"abs", "sqrt", "erf", "neg", "exp", "sin"})
      x = graph.node(Kind::kUnary, {x}, {3, 5}, {{"function", named(function)}});
    graph.output(graph.node(Kind::kBinary, {x, x}, {3, 5}, {{"function", Function::kMul}}));
  });
}

void add_matmul(Cases& cases, const std::string& name, const Shape& a, const Shape& b, const Shape& y, bool turn_a,
                bool turn_b, double alpha, bool constant) {
  cases.add(name, [=](CaseGraphBuilder& graph, Random& random) {
    const ValueIndex left = graph.input(a);
    const ValueIndex right = constant ? weights(graph, random, b) : graph.input(b);
    const ValueIndex bias = weights(graph, random, {y.back()});
    const AttributeList attributes{
        {"transpose_a", integer(turn_a)}, {"transpose_b", integer(turn_b)}, {"alpha", alpha}};
    graph.output(graph.node(Kind::kMatMul, {left, right}, y, attributes));
    graph.output(graph.node(Kind::kMatMul, {left, right, bias}, y, attributes, kFloat, {activation("gelu")}));
  });
}

void add_matmuls(Cases& cases) {
  for (const bool constant : {true, false}) {
    const std::string suffix = constant ? "_constant" : "_variable";
    add_matmul(cases, "matmul" + suffix, {4, 32}, {32, 48}, {4, 48}, false, false, 1.0, constant);
    add_matmul(cases, "matmul_one_row" + suffix, {1, 70}, {70, 33}, {1, 33}, false, false, 1.0, constant);
    add_matmul(cases, "matmul_transposed" + suffix, {32, 5}, {17, 32}, {5, 17}, true, true, 0.5, constant);
    add_matmul(cases, "matmul_flat_right" + suffix, {2, 3, 4, 16}, {24, 16}, {2, 3, 4, 24}, false, true, 1.0, constant);
    add_matmul(cases, "matmul_batched" + suffix, {2, 3, 5, 8}, {2, 3, 8, 7}, {2, 3, 5, 7}, false, false, 0.125,
               constant);
    add_matmul(cases, "matmul_broadcast" + suffix, {2, 1, 5, 8}, {3, 8, 7}, {2, 3, 5, 7}, false, false, 1.0, constant);
  }
  cases.add("attention_scores", [](CaseGraphBuilder& graph, Random&) {
    const ValueIndex q = graph.input({2, 3, 6, 8}), k = graph.input({2, 3, 6, 8}), mask = graph.input({2, 1, 1, 6});
    const ValueIndex scores = graph.node(Kind::kMatMul, {q, k, kNoValue, mask}, {2, 3, 6, 6},
                                         {{"transpose_a", integer(0)}, {"transpose_b", integer(1)}, {"alpha", 0.35}},
                                         kFloat, {combination("add", 3)});
    graph.output(graph.node(Kind::kSoftmax, {scores}, {2, 3, 6, 6}, {{"axis", integer(3)}, {"log", integer(0)}}));
  });
  for (const DataType type : {DataType::kInt32, DataType::kInt64, DataType::kFloat64}) {
    const std::string suffix = "_" + std::string(to_string(type));
    cases.node("matmul" + suffix, Kind::kMatMul, {{2, 1, 3, 4}, {2, 4, 5}}, {2, 2, 3, 5},
               {{"transpose_a", integer(0)}, {"transpose_b", integer(0)}, {"alpha", 1.0}}, {-9, 9}, type, type);
    cases.node("matmul_transposed" + suffix, Kind::kMatMul, {{4, 3}, {5, 4}}, {3, 5},
               {{"transpose_a", integer(1)}, {"transpose_b", integer(1)}, {"alpha", 1.0}}, {-9, 9}, type, type);
  }
  cases.add("capped_scores", [](CaseGraphBuilder& graph, Random&) {
    const ValueIndex q = graph.input({2, 3, 4, 8}), k = graph.input({2, 3, 6, 8});
    graph.output(graph.node(Kind::kMatMul, {q, k}, {2, 3, 4, 6},
                            {{"transpose_a", integer(0)}, {"transpose_b", integer(1)}, {"alpha", 0.35}}, kFloat,
                            {activation("linear", 0.5, 0), activation("tanh"), activation("linear", 2, 0)}));
  });
  cases.add("matmul_residual", [](CaseGraphBuilder& graph, Random& random) {
    const ValueIndex x = graph.input({2, 4, 16});
    const AttributeList plain{{"transpose_a", integer(0)}, {"transpose_b", integer(0)}, {"alpha", 1.0}};
    const ValueIndex stem = graph.node(Kind::kMatMul, {x, weights(graph, random, {16, 16})}, {2, 4, 16}, plain);
    const ValueIndex inner =
        graph.node(Kind::kMatMul, {stem, weights(graph, random, {16, 32}), weights(graph, random, {32})}, {2, 4, 32},
                   plain, kFloat, {activation("gelu_tanh")});
    const ValueIndex sum =
        graph.node(Kind::kMatMul, {inner, weights(graph, random, {32, 16}), weights(graph, random, {16}), stem},
                   {2, 4, 16}, plain, kFloat, {combination("add", 3)});
    graph.output(graph.node(Kind::kLayerNorm, {sum, weights(graph, random, {16}), weights(graph, random, {16})},
                            {2, 4, 16}, {{"axis", integer(2)}, {"epsilon", 1e-5}}));
  });
}

void add_pools(Cases& cases) {
  const auto pool = [&](const std::string& name, Kind kind, const Shape& x, const Shape& y, const Ints& kernel,
                        const Ints& strides, const Ints& dilations, const Ints& pads, const Ints& extra = {}) {
    std::vector<std::pair<const char*, Attribute>> attributes{
        {"kernel", kernel}, {"strides", strides}, {"dilations", dilations}, {"pads", pads}};
    if (kind == Kind::kMaxPool) return cases.node("max_" + name, kind, {x}, y, attributes);
    for (int64_t include : {0, 1}) {
      auto all = attributes;
      all.emplace_back("count_include_pad", include);
      all.emplace_back("extra_pads", extra.empty() ? Ints(kernel.size(), 0) : extra);
      cases.node((include ? "average_including_" : "average_") + name, kind, {x}, y, all);
    }
  };
  for (const Kind kind : {Kind::kMaxPool, Kind::kAveragePool}) {
    pool("pool_3x3", kind, {2, 16, 7, 7}, {2, 16, 4, 4}, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1});
    pool("pool_asymmetric", kind, {1, 5, 6, 7}, {1, 5, 3, 7}, {2, 3}, {2, 1}, {1, 1}, {0, 2, 0, 0});
    pool("pool_ceil", kind, {1, 8, 6, 6}, {1, 8, 4, 4}, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, {1, 1});
    pool("pool_1d", kind, {2, 3, 9}, {2, 3, 4}, {3}, {2}, {1}, {0, 0});
    pool("pool_3d", kind, {1, 4, 4, 4, 4}, {1, 4, 2, 2, 2}, {2, 2, 2}, {2, 2, 2}, {1, 1, 1}, {0, 0, 0, 0, 0, 0});
    pool("pool_dilated", kind, {1, 4, 9, 9}, {1, 4, 5, 5}, {3, 3}, {1, 1}, {2, 2}, {0, 0, 0, 0});
    // Of few channels, rows longer than what is taken at a time, and windows that see padding only.
    pool("pool_wide", kind, {1, 3, 5, 300}, {1, 3, 5, 300}, {5, 5}, {1, 1}, {1, 1}, {2, 2, 2, 2});
    pool("pool_of_long_rows", kind, {1, 1, 2, 1500}, {1, 1, 1, 750}, {2, 2}, {2, 2}, {1, 1}, {0, 0, 0, 0});
    pool("pool_with_long_windows", kind, {1, 1, 1, 2600}, {1, 1, 1, 2}, {1, 1300}, {1, 1300}, {1, 1}, {0, 0, 0, 0});
    pool("pool_far_apart", kind, {1, 3, 7, 20}, {1, 3, 3, 6}, {2, 3}, {3, 3}, {1, 2}, {0, 0, 1, 0});
    pool("pool_dilated_padded", kind, {1, 4, 5, 5}, {1, 4, 5, 5}, {3, 3}, {1, 1}, {2, 2}, {2, 2, 2, 2});
  }
}

void add_elementwise(Cases& cases) {
  for (const char* function :
       {"relu", "sigmoid",   "tanh",     "erf",        "exp",  "neg", "abs", "floor", "ceil", "round", "sign",
        "gelu", "gelu_tanh", "softplus", "hard_swish", "silu", "sin", "cos", "atan",  "sinh", "cosh",  "asinh"})
    cases.node(std::string("unary_") + function, Kind::kUnary, {{3, 7, 5}}, {3, 7, 5}, {{"function", named(function)}},
               {-4, 4});
  for (const char* function : {"log", "sqrt", "reciprocal"})
    cases.node(std::string("unary_") + function, Kind::kUnary, {{3, 7, 5}}, {3, 7, 5}, {{"function", named(function)}},
               {0.1, 9});
  for (const char* function : {"tan", "asin", "acos", "atanh"})
    cases.node(std::string("unary_") + function, Kind::kUnary, {{3, 7, 5}}, {3, 7, 5}, {{"function", named(function)}},
               {-0.9, 0.9});
  cases.node("unary_acosh", Kind::kUnary, {{3, 7, 5}}, {3, 7, 5}, {{"function", Function::kAcosh}}, {1.1, 9});
  for (const char* function : {"tanh", "erf", "floor", "atan"})
    cases.node(std::string("unary_") + function + "_FP64", Kind::kUnary, {{6}}, {6}, {{"function", named(function)}},
               {-3, 3}, DataType::kFloat64, DataType::kFloat64);
  for (const auto& [function, alpha, beta] :
       {std::tuple("clip", -0.5, 0.75), std::tuple("leaky_relu", 0.1, 0.0), std::tuple("elu", 1.5, 0.0),
        std::tuple("hard_sigmoid", 0.2, 0.5), std::tuple("linear", 3.0, -2.0)})
    cases.node(std::string("unary_") + function, Kind::kUnary, {{2, 3, 5, 5}}, {2, 3, 5, 5},
               {{"function", named(function)}, {"alpha", alpha}, {"beta", beta}}, {-2, 2});
  for (const DataType type : {DataType::kInt64, DataType::kInt32, DataType::kFloat64})
    for (const char* function : {"relu", "neg", "abs", "sign"})
      cases.node(std::string("unary_") + function + "_" + std::string(to_string(type)), Kind::kUnary, {{6}}, {6},
                 {{"function", named(function)}}, {-3, 3}, type, type);
  cases.node("unary_clip_INT64", Kind::kUnary, {{9}}, {9},
             {{"function", Function::kClip}, {"alpha", -1.0}, {"beta", 1e30}}, {-9, 9}, DataType::kInt64,
             DataType::kInt64);
  cases.node("unary_not", Kind::kUnary, {{9}}, {9}, {{"function", Function::kNot}}, {0, 1}, DataType::kBool,
             DataType::kBool);
  cases.node("unary_scalar", Kind::kUnary, {{}}, {}, {{"function", Function::kTanh}});
}

void add_binary(Cases& cases) {
  const std::vector<std::tuple<const char*, Shape, Shape, Shape>> shapes{
      {"same", {2, 3, 4, 5}, {2, 3, 4, 5}, {2, 3, 4, 5}},
      {"scalar", {3, 4}, {}, {3, 4}},
      {"scalar_left", {}, {3, 4}, {3, 4}},
      {"channel", {2, 3, 4, 5}, {3, 1, 1}, {2, 3, 4, 5}},
      {"row", {2, 4, 6}, {6}, {2, 4, 6}},
      {"both", {4, 1, 3}, {5, 1}, {4, 5, 3}}};
  for (const auto& [name, a, b, y] : shapes)
    for (const char* function : {"add", "sub", "mul", "div", "max", "min", "prelu"})
      cases.node(std::string("binary_") + function + "_" + name, Kind::kBinary, {a, b}, y,
                 {{"function", named(function)}}, {0.5, 2});
  cases.node("binary_pow", Kind::kBinary, {{4, 5}, {5}}, {4, 5}, {{"function", Function::kPow}}, {0.5, 3});
  for (const char* function : {"mod", "fmod"})
    cases.node(std::string("binary_") + function, Kind::kBinary, {{4, 5}, {5}}, {4, 5}, {{"function", named(function)}},
               {-3, 3});
  for (const char* function : {"bit_and", "bit_or", "bit_xor", "shift_left", "shift_right"})
    for (const DataType type : {DataType::kUint8, DataType::kInt32, DataType::kUint16, DataType::kInt64})
      cases.node(std::string("binary_") + function + "_" + std::string(to_string(type)), Kind::kBinary, {{4, 5}, {5}},
                 {4, 5}, {{"function", named(function)}}, {0, 4}, type, type);
  cases.node("binary_prelu_negative_same", Kind::kBinary, {{2, 4, 5}, {2, 4, 5}}, {2, 4, 5},
             {{"function", Function::kPrelu}}, {-1, 1});
  cases.node("binary_prelu_negative", Kind::kBinary, {{2, 4, 5}, {4, 1}}, {2, 4, 5}, {{"function", Function::kPrelu}},
             {-1, 1});
  for (const char* function : {"equal", "less", "less_or_equal", "greater", "greater_or_equal"})
    for (const DataType type : {kFloat, DataType::kInt64, DataType::kInt32})
      cases.node(std::string("binary_") + function + "_" + std::string(to_string(type)), Kind::kBinary, {{4, 5}, {5}},
                 {4, 5}, {{"function", named(function)}}, {0, 2}, type, DataType::kBool);
  for (const char* function : {"and", "or", "xor", "equal"})
    cases.node(std::string("binary_") + function + "_BOOL", Kind::kBinary, {{4, 5}, {5}}, {4, 5},
               {{"function", named(function)}}, {0, 1}, DataType::kBool, DataType::kBool);
  for (const char* function : {"add", "sub", "mul", "div", "mod", "fmod", "min", "max"})
    for (const DataType type : {DataType::kInt64, DataType::kInt32, DataType::kInt16, DataType::kFloat64})
      cases.node(std::string("binary_") + function + "_" + std::string(to_string(type)), Kind::kBinary, {{4, 5}, {5}},
                 {4, 5}, {{"function", named(function)}}, {-5, 5}, type, type);
  cases.add("binary_post_operations", [](CaseGraphBuilder& graph, Random&) {
    const ValueIndex a = graph.input({2, 3, 4}), b = graph.input({4}), c = graph.input({2, 3, 4});
    graph.output(graph.node(Kind::kBinary, {a, b, c}, {2, 3, 4}, {{"function", Function::kMul}}, kFloat,
                            {combination("add", 2), activation("relu")}));
  });
  cases.add("affine", [](CaseGraphBuilder& graph, Random& random) {
    const ValueIndex x = graph.input({2, 5, 3, 3}), y = graph.input({2, 5}), scale = graph.input({5});
    graph.output(
        graph.node(Kind::kAffine, {x, weights(graph, random, {5}), weights(graph, random, {5})}, {2, 5, 3, 3}));
    graph.output(
        graph.node(Kind::kAffine, {y, scale, weights(graph, random, {5})}, {2, 5}, {}, kFloat, {activation("tanh")}));
  });
}

void add_normalizations(Cases& cases) {
  for (int64_t axis : {0, 1, 2})
    for (int64_t log : {0, 1})
      cases.node((log ? "log_softmax_" : "softmax_") + std::to_string(axis), Kind::kSoftmax, {{3, 17, 6}}, {3, 17, 6},
                 {{"axis", axis}, {"log", log}}, {-5, 5});
  for (int64_t axis : {1, 2})
    cases.node("layer_norm_plain_" + std::to_string(axis), Kind::kLayerNorm, {{3, 4, 16}}, {3, 4, 16},
               {{"axis", axis}, {"epsilon", 1e-5}});
  cases.node("layer_norm_scaled", Kind::kLayerNorm, {{3, 4, 16}, {4, 16}, {4, 16}}, {3, 4, 16},
             {{"axis", integer(1)}, {"epsilon", 1e-3}});
  // Scale and bias for each channel: of instances, of groups, and of one value each.
  const std::vector<std::tuple<const char*, Shape, Shape, int64_t>> channels{
      {"instance", {3, 5, 49}, {5, 1}, 2},
      {"instance_long", {1, 2, 5000}, {2, 1}, 2},
      {"instance_of_one", {2, 3, 1}, {3, 1}, 2},
      {"group", {2, 3, 4, 21}, {3, 4, 1}, 2},
      {"group_of_values", {2, 3, 4, 1}, {3, 4, 1}, 2},
      {"all", {2, 3, 17}, {1}, 1}};
  for (const auto& [name, x, parameters, axis] : channels)
    cases.node(std::string("layer_norm_") + name, Kind::kLayerNorm, {x, parameters, parameters}, x,
               {{"axis", axis}, {"epsilon", 1e-5}}, {-2, 5});
  for (int64_t extent : {1, 2, 16, 37, 64, 300})
    for (int64_t log : {0, 1})
      cases.node((log ? "log_softmax_of_" : "softmax_of_") + std::to_string(extent), Kind::kSoftmax, {{7, extent}},
                 {7, extent}, {{"axis", int64_t{1}}, {"log", log}}, {-30, 30});
  for (int64_t size : {3, 4, 5})
    cases.node("lrn_" + std::to_string(size), Kind::kLrn, {{2, 16, 4, 4}}, {2, 16, 4, 4},
               {{"size", size}, {"alpha", 0.1}, {"beta", 0.75}, {"bias", 2.0}});
}

// More keys than one block holds, rows and columns that do not fill a vector, and heads that share.
void add_attention(Cases& cases) {
  const auto add = [&](const char* name, std::vector<Shape> inputs, Shape y, int64_t transposed) {
    cases.node(std::string("attention_") + name, Kind::kAttention, inputs, y,
               {{"alpha", 0.3}, {"transpose_k", transposed}}, {-2, 2});
  };
  add("plain", {{2, 3, 7, 8}, {2, 3, 19, 8}, {2, 3, 19, 8}}, {2, 3, 7, 8}, 0);
  add("whole_vectors", {{25, 64}, {320, 64}, {320, 64}}, {25, 64}, 0);
  add("transposed", {{2, 8, 20}, {2, 20, 300}, {2, 300, 70}}, {2, 8, 70}, 1);
  add("mask", {{2, 2, 9, 16}, {2, 2, 33, 16}, {2, 2, 33, 5}, {2, 1, 1, 33}}, {2, 2, 9, 5}, 0);
  add("mask_of_queries", {{30, 8}, {270, 8}, {2, 270, 20}, {30, 270}}, {2, 30, 20}, 0);
  add("shared_heads", {{2, 4, 6, 8}, {2, 1, 10, 8}, {1, 4, 10, 3}}, {2, 4, 6, 3}, 0);
  add("many_queries", {{1000, 4}, {5, 4}, {5, 2}}, {1000, 2}, 0);
  cases.node("attention_negative_scale", Kind::kAttention, {{5, 8}, {9, 8}, {9, 8}}, {5, 8},
             {{"alpha", -0.7}, {"transpose_k", integer(0)}}, {-2, 2});
  // Masks as exporters write them; all keys of the first query are hidden.
  cases.add("attention_least_mask", [](CaseGraphBuilder& graph, Random&) {
    const ValueIndex q = graph.input({2, 8}), k = graph.input({5, 8}), v = graph.input({5, 8});
    Array mask{.shape = {2, 5}, .values = std::vector<double>(10, std::numeric_limits<float>::lowest())};
    mask.values[7] = 0;
    graph.output(graph.node(Kind::kAttention, {q, k, v, graph.constant(mask)}, {2, 8},
                            {{"alpha", 1.0}, {"transpose_k", integer(0)}}));
  });
  // Most keys, among them all of the first blocks, are hidden.
  cases.add("attention_hidden_keys", [](CaseGraphBuilder& graph, Random&) {
    const ValueIndex q = graph.input({2, 5, 8}), k = graph.input({2, 600, 8}), v = graph.input({2, 600, 8});
    Array mask{.shape = {600}, .values = std::vector<double>(600, -std::numeric_limits<double>::infinity())};
    mask.values[530] = mask.values[599] = 0;
    graph.output(graph.node(Kind::kAttention, {q, k, v, graph.constant(mask)}, {2, 5, 8},
                            {{"alpha", 1.0}, {"transpose_k", integer(0)}}));
  });
}

void add_reductions(Cases& cases) {
  for (const char* function : {"mean", "sum", "max", "min", "prod", "l1", "l2", "sum_square", "log_sum_exp"}) {
    cases.node(std::string("reduce_") + function, Kind::kReduce, {{3, 4, 5}}, {3, 5},
               {{"function", named(function)}, {"axes", Ints{1}}, {"keep_dims", integer(0)}});
    cases.node(std::string("reduce_all_") + function, Kind::kReduce, {{3, 4, 5}}, {},
               {{"function", named(function)}, {"axes", Ints{0, 1, 2}}, {"keep_dims", integer(0)}});
    // A product of so many stays finite near 1 only; of others, each element is to count.
    const Range range = function == std::string("prod") ? Range{0.99, 1.01} : Range{0.5, 2};
    cases.node(std::string("reduce_rows_") + function, Kind::kReduce, {{3, 1100}}, {3},
               {{"function", named(function)}, {"axes", Ints{1}}, {"keep_dims", integer(0)}}, range);
    // Of neighbours, which vectors do not divide.
    cases.node(std::string("reduce_across_") + function, Kind::kReduce, {{2, 6, 75}}, {2, 75},
               {{"function", named(function)}, {"axes", Ints{1}}, {"keep_dims", integer(0)}});
  }
  cases.node("reduce_image", Kind::kReduce, {{2, 16, 4, 4}}, {2, 16, 1, 1},
             {{"function", Function::kMean}, {"axes", Ints{2, 3}}, {"keep_dims", integer(1)}});
  cases.node("reduce_ends", Kind::kReduce, {{2, 3, 4}}, {1, 3, 1},
             {{"function", Function::kMax}, {"axes", Ints{0, 2}}, {"keep_dims", integer(1)}});
  for (const char* function : {"sum", "max", "min", "prod", "mean"})
    cases.node(std::string("reduce_INT64_") + function, Kind::kReduce, {{3, 4}}, {3},
               {{"function", named(function)}, {"axes", Ints{1}}, {"keep_dims", integer(0)}}, {-3, 3}, DataType::kInt64,
               DataType::kInt64);
  for (int64_t last : {0, 1})
    for (int64_t largest : {0, 1})
      cases.node("arg_reduce_" + std::to_string(last) + std::to_string(largest), Kind::kArgReduce, {{3, 8, 2}}, {3, 2},
                 {{"axis", integer(1)}, {"keep_dims", integer(0)}, {"select_last", last}, {"largest", largest}}, {0, 2},
                 DataType::kInt32, DataType::kInt64);
  cases.node("arg_max_of_neighbours", Kind::kArgReduce, {{2, 9, 300}}, {2, 300},
             {{"axis", integer(1)}, {"keep_dims", integer(0)}, {"select_last", integer(0)}, {"largest", integer(1)}},
             {-1, 1}, kFloat, DataType::kInt64);
  cases.node("arg_max", Kind::kArgReduce, {{4, 10}}, {4, 1},
             {{"axis", integer(1)}, {"keep_dims", integer(1)}, {"select_last", integer(0)}, {"largest", integer(1)}},
             {-1, 1}, kFloat, DataType::kInt64);
}

void add_movements(Cases& cases) {
  for (const DataType type : {kFloat, DataType::kInt64, DataType::kBool, DataType::kInt16}) {
    const std::string suffix = "_" + std::string(to_string(type));
    const Range range{0, 1};
    const auto move = [&](const char* name, Kind kind, const std::vector<Shape>& x, const Shape& y,
                          const std::vector<std::pair<const char*, Attribute>>& attributes) {
      cases.node(name + suffix, kind, x, y, attributes, range, type, type);
    };
    move("concat_0", Kind::kConcat, {{2, 3}, {1, 3}}, {3, 3}, {{"axis", integer(0)}});
    move("concat_2", Kind::kConcat, {{2, 3, 4}, {2, 3, 1}, {2, 3, 2}}, {2, 3, 7}, {{"axis", integer(2)}});
    move("slice", Kind::kSlice, {{4, 6, 5}}, {2, 3, 5}, {{"starts", Ints{1, 0, 0}}, {"steps", Ints{2, 2, 1}}});
    move("slice_backwards", Kind::kSlice, {{4, 6}}, {4, 3}, {{"starts", Ints{3, 5}}, {"steps", Ints{-1, -2}}});
    move("transpose", Kind::kTranspose, {{2, 3, 4, 5}}, {4, 2, 5, 3}, {{"permutation", Ints{2, 0, 3, 1}}});
    move("transpose_channels_last", Kind::kTranspose, {{2, 9, 3, 5}}, {2, 3, 5, 9},
         {{"permutation", Ints{0, 2, 3, 1}}});
    move("transpose_channels_first", Kind::kTranspose, {{2, 4, 5, 10}}, {2, 10, 4, 5},
         {{"permutation", Ints{0, 3, 1, 2}}});
    move("transpose_heads", Kind::kTranspose, {{2, 9, 10, 4}}, {2, 10, 9, 4}, {{"permutation", Ints{0, 2, 1, 3}}});
    move("transpose_matrix", Kind::kTranspose, {{17, 40}}, {40, 17}, {{"permutation", Ints{1, 0}}});
    move("transpose_of_ones", Kind::kTranspose, {{1, 3, 1}}, {3, 1, 1}, {{"permutation", Ints{1, 0, 2}}});
    move("reshape", Kind::kReshape, {{2, 3, 4}}, {6, 4}, {});
    move("expand", Kind::kExpand, {{3, 1, 2}}, {4, 3, 5, 2}, {});
    move("pad", Kind::kPad, {{2, 3}}, {4, 6}, {{"pads", Ints{1, 2, 1, 1}}, {"mode", text("constant")}, {"value", 0.0}});
    move("pad_edge", Kind::kPad, {{2, 3}}, {4, 6},
         {{"pads", Ints{1, 2, 1, 1}}, {"mode", text("edge")}, {"value", 0.0}});
    move("pad_reflect", Kind::kPad, {{3, 4}}, {5, 7},
         {{"pads", Ints{1, 2, 1, 1}}, {"mode", text("reflect")}, {"value", 0.0}});
    cases.add(
        "where" + suffix,
        [=](CaseGraphBuilder& graph, Random&) {
          const ValueIndex condition = graph.input({3, 1}, DataType::kBool), a = graph.input({4}, type),
                           b = graph.input({2, 3, 4}, type);
          graph.output(graph.node(Kind::kWhere, {condition, a, b}, {2, 3, 4}, {}, type));
        },
        range);
    for (const DataType index : {DataType::kInt32, DataType::kInt64})
      cases.add(
          "gather_" + std::string(to_string(index)) + suffix,
          [=](CaseGraphBuilder& graph, Random&) {
            const ValueIndex x = graph.input({2, 5, 3}, type);
            const ValueIndex indices = graph.constant({.type = index, .shape = {2, 2}, .values = {0, 4, -1, 2}});
            graph.output(graph.node(Kind::kGather, {x, indices}, {2, 2, 2, 3}, {{"axis", integer(1)}}, type));
          },
          range);
  }
  cases.node("reinterpret", Kind::kReshape, {{2, 3}}, {3, 2}, {}, {-9, 9}, DataType::kInt32, DataType::kUint32);
  cases.node("pad_value", Kind::kPad, {{2, 3}}, {4, 6},
             {{"pads", Ints{1, 2, 1, 1}}, {"mode", text("constant")}, {"value", 2.5}});
  for (const DataType from : {kFloat, DataType::kInt64, DataType::kInt32, DataType::kBool, DataType::kUint8})
    for (const DataType to : {kFloat, DataType::kInt64, DataType::kInt32, DataType::kBool, DataType::kInt8})
      cases.node("cast_" + std::string(to_string(from)) + "_" + std::string(to_string(to)), Kind::kCast, {{3, 5}},
                 {3, 5}, {}, from == DataType::kBool ? Range{0, 1} : Range{0, 9}, from, to);
  cases.add("cast_through_half",
            [](CaseGraphBuilder& graph, Random&) {
              const ValueIndex x = graph.input({64});
              for (const DataType narrow : {DataType::kFloat16, DataType::kBfloat16}) {
                const ValueIndex half =
                    graph.node(Kind::kCast, {graph.node(Kind::kUnary, {x}, {64}, {{"function", Function::kRound}})},
                               {64}, {}, narrow);
                graph.output(graph.node(Kind::kCast, {half}, {64}));
              }
            },
            {-100, 100});
}

void add_along_dimension(Cases& cases) {
  const auto add_indexed = [&](const std::string& name, DataType type, const auto& build) {
    cases.add(name + "_" + std::string(to_string(type)),
              [=](CaseGraphBuilder& graph, Random&) {
                const ValueIndex x = graph.input({3, 5, 2}, type);
                const ValueIndex indices = graph.constant(
                    {.type = DataType::kInt64, .shape = {2, 3, 2}, .values = {0, 4, -1, 2, 3, 1, 2, 2, 2, 0, -5, 4}});
                graph.output(build(graph, x, indices));
              },
              {-3, 3});
  };
  for (const DataType type : {kFloat, DataType::kInt64, DataType::kInt8}) {
    add_indexed("gather_elements", type, [=](CaseGraphBuilder& graph, ValueIndex x, ValueIndex indices) {
      return graph.node(Kind::kGatherElements, {x, indices}, {2, 3, 2}, {{"axis", integer(1)}}, type);
    });
    for (const char* reduction : {"none", "add", "mul", "min", "max"})
      add_indexed(std::string("scatter_elements_") + reduction, type,
                  [=](CaseGraphBuilder& graph, ValueIndex x, ValueIndex indices) {
                    const ValueIndex updates = graph.input({2, 3, 2}, type);
                    return graph.node(Kind::kScatterElements, {x, indices, updates}, {3, 5, 2},
                                      {{"axis", integer(1)}, {"reduction", named(reduction)}}, type);
                  });
    const std::string suffix = "_" + std::string(to_string(type));
    for (int64_t largest : {0, 1})
      cases.node("top_" + std::to_string(largest) + suffix, Kind::kTopK, {{3, 8, 2}}, {3, 4, 2},
                 {{"axis", integer(1)}, {"largest", largest}}, {-3, 3}, type, DataType::kInt64);
    for (const char* function : {"sum", "prod"})
      for (int64_t exclusive : {0, 1})
        for (int64_t reverse : {0, 1})
          cases.node(
              std::string("cumulative_") + function + std::to_string(exclusive) + std::to_string(reverse) + suffix,
              Kind::kCumulative, {{3, 4, 2}}, {3, 4, 2},
              {{"function", named(function)}, {"axis", integer(1)}, {"exclusive", exclusive}, {"reverse", reverse}},
              {-2, 2}, type, type);
  }
}

void add_recurrent(Cases& cases, const char* cell, const char* direction, int64_t length, int64_t batch,
                   int64_t hidden) {
  const int64_t gates = std::string(cell) == "lstm" ? 4 : std::string(cell) == "gru" ? 3 : 1;
  const int64_t directions = std::string(direction) == "bidirectional" ? 2 : 1;
  const std::string name = std::string("recurrent_") + cell + "_" + direction + "_" + std::to_string(hidden);
  cases.add(name, [=](CaseGraphBuilder& graph, Random& random) {
    const ValueIndex x = graph.input({length, batch, directions * gates * hidden});
    const ValueIndex r = weights(graph, random, {directions, gates, hidden, hidden});
    const ValueIndex bias = gates == 3 ? weights(graph, random, {directions, hidden}) : kNoValue;
    const ValueIndex state = graph.input({directions, batch, hidden});
    const ValueIndex memory = gates == 4 ? graph.input({directions, batch, hidden}) : kNoValue;
    const Shape y{length + (gates == 4 ? 1 : 0), directions, batch, hidden};
    const auto add = [&](std::vector<ValueIndex> inputs) {
      graph.output(
          graph.node(Kind::kRecurrent, std::move(inputs), y, {{"cell", text(cell)}, {"direction", text(direction)}}));
    };
    add({x, r, bias, state, memory});
    add({x, r});
  });
}

void add_recurrent(Cases& cases) {
  for (const char* cell : {"lstm", "gru", "rnn"}) {
    add_recurrent(cases, cell, "forward", 5, 3, 16);
    add_recurrent(cases, cell, "reverse", 3, 2, 21);
    add_recurrent(cases, cell, "bidirectional", 4, 7, 40);
  }
  add_recurrent(cases, "lstm", "forward", 2, 1, 370);  // large enough to share a step
}

struct Ensemble {
  int64_t trees, depth, features, targets;
  int64_t width = 1;      // of a leaf
  bool targeted = false;  // leaves say which column is theirs
  Function function = Function::kSum;
  DataType type = kFloat;
};

// A random ensemble: some leaves come early, so that paths differ in length.
class Forest {
 public:
  Forest(const Ensemble& of, Random& random) : of_(of), random_(random), nodes_(static_cast<size_t>(of.trees)) {
    for (uint32_t tree = 0; tree < of.trees; ++tree) grow(tree, of.depth);
  }

  Array nodes() const {
    Array array{DataType::kUint8, {static_cast<int64_t>(nodes_.size()), sizeof(TreeNode)}, {}};
    for (std::byte byte : std::as_bytes(std::span(nodes_))) array.values.push_back(std::to_integer<int>(byte));
    return array;
  }
  int64_t leaves() const { return leaves_; }

 private:
  void grow(uint32_t at, int64_t depth) {
    if (depth == 0 || random_.below(6) == 0) {
      nodes_[at] = {0, static_cast<uint32_t>(leaves_++), at};
      return;
    }
    const auto child = static_cast<uint32_t>(nodes_.size());
    nodes_.resize(child + 2);
    // Halves, which whole numbers and their halves meet.
    const double threshold = static_cast<double>(random_.below(9)) / 2 - 2;
    nodes_[at] = {tree_key(threshold) - random_.below(2),
                  static_cast<uint32_t>(random_.below(2 * static_cast<uint64_t>(of_.features))), child};
    grow(child, depth - 1);
    grow(child + 1, depth - 1);
  }

  const Ensemble of_;
  Random& random_;
  std::vector<TreeNode> nodes_;
  int64_t leaves_ = 0;
};

void add_tree_ensemble(Cases& cases, const std::string& name, int64_t rows, const Ensemble& of) {
  const auto build = [=](CaseGraphBuilder& graph, Random& random) {
    // Halves and, above 1.5, NaN.
    const Shape shape{rows, of.features};
    const ValueIndex whole = graph.input(shape, DataType::kInt32);
    ValueIndex x = graph.node(Kind::kCast, {whole}, shape, {}, of.type);
    const auto scalar = [&](double value) { return graph.constant({of.type, {1}, {value}}); };
    x = graph.node(Kind::kBinary, {x, scalar(0.5)}, shape, {{"function", Function::kMul}}, of.type);
    const ValueIndex large =
        graph.node(Kind::kBinary, {x, scalar(1.5)}, shape, {{"function", Function::kGreater}}, DataType::kBool);
    x = graph.node(Kind::kWhere, {large, scalar(std::numeric_limits<double>::quiet_NaN()), x}, shape, {}, of.type);
    const Forest forest(of, random);
    std::vector<ValueIndex> inputs{x, graph.constant(forest.nodes()),
                                   weights(graph, random, {forest.leaves(), of.width})};
    if (of.targeted) {
      const double last = static_cast<double>(of.targets - of.width);
      inputs.push_back(graph.constant(random_array(DataType::kInt32, {forest.leaves()}, random, {0, last})));
    }
    graph.output(graph.node(Kind::kTreeEnsemble, inputs, {rows, of.targets},
                            {{"function", of.function}, {"trees", of.trees}, {"depth", of.depth}}));
  };
  cases.add("tree_ensemble_" + name, build, {-5, 5});
}

void add_tree_ensembles(Cases& cases) {
  add_tree_ensemble(cases, "one_row", 1, {.trees = 37, .depth = 6, .features = 10, .targets = 1});
  add_tree_ensemble(cases, "rows", 35, {.trees = 20, .depth = 5, .features = 7, .targets = 1});
  add_tree_ensemble(cases, "many_rows", 200, {.trees = 50, .depth = 7, .features = 4, .targets = 1});
  add_tree_ensemble(cases, "one_leaf", 3, {.trees = 1, .depth = 0, .features = 1, .targets = 1});
  add_tree_ensemble(cases, "wide_leaves", 18, {.trees = 17, .depth = 4, .features = 5, .targets = 3, .width = 3});
  add_tree_ensemble(cases, "targets", 17,
                    {.trees = 30, .depth = 4, .features = 5, .targets = 4, .width = 2, .targeted = true});
  add_tree_ensemble(cases, "doubles", 19,
                    {.trees = 9, .depth = 6, .features = 3, .targets = 1, .type = DataType::kFloat64});
  for (const Function function : {Function::kMin, Function::kMax})
    add_tree_ensemble(cases, std::string(to_string(function)), 18,
                      {.trees = 21, .depth = 3, .features = 6, .targets = 2, .width = 2, .function = function});
}

void add_pair_couplings(Cases& cases) {
  for (const int64_t classes : {2, 3, 7})
    cases.node("pair_coupling_" + std::to_string(classes), Kind::kPairCoupling, {{5, classes * (classes - 1) / 2}},
               {5, classes}, {}, {0.01, 0.99});
}

void add_resizes(Cases& cases) {
  for (const char* mode : {"nearest", "linear"})
    for (const char* coordinates : {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"}) {
      const auto resize = [&](const char* nearest, Shape y, Reals scales) {
        cases.node(
            std::string("resize_") + mode + "_" + coordinates + "_" + nearest + "_" + std::to_string(y[2]),
            Kind::kResize, {{1, 2, 4, 5}}, y,
            {{"mode", text(mode)}, {"coordinates", text(coordinates)}, {"nearest", text(nearest)}, {"scales", scales}});
      };
      resize("floor", {1, 2, 8, 10}, {1, 1, 2, 2});
      resize("round_prefer_floor", {1, 2, 6, 3}, {1, 1, 1.5, 0.6});
      resize("ceil", {1, 2, 2, 5}, {1, 1, 0.5, 1});
      resize("round_prefer_ceil", {1, 2, 1, 15}, {1, 1, 0.25, 3});
      resize("round_prefer_floor", {1, 2, 9, 1100}, {1, 1, 2.25, 220});
    }
  for (const char* mode : {"nearest", "linear"})
    cases.node(std::string("resize_volume_") + mode, Kind::kResize, {{1, 2, 3, 4, 5}}, {1, 2, 5, 8, 5},
               {{"mode", text(mode)},
                {"coordinates", text("half_pixel")},
                {"nearest", text("floor")},
                {"scales", Reals{1, 1, 5. / 3, 2, 1}}});
}

// From a dense image, and from what a convolution gives: channels that fill blocks and that do not.
void add_depth_to_space(Cases& cases) {
  for (const int64_t channels : {1, 3, 8, 16, 20, 32})
    for (const auto& block : {std::pair<int64_t, int64_t>{2, 2}, {1, 3}, {4, 1}, {1, 1}}) {
      const int64_t rows = block.first, columns = block.second;
      const std::string name = fmt::format("depth_to_space_{}x{}_of_{}", rows, columns, channels);
      cases.add(name, [=](CaseGraphBuilder& graph, Random& random) {
        const Convolution conv{{2, 16, 5, 3}, {rows * columns * channels, 16, 1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}};
        const Shape deep{2, rows * columns * channels, 5, 3}, wide{2, channels, 5 * rows, 3 * columns};
        const ValueIndex convolved =
            convolve(graph, conv, {graph.input(conv.x), weights(graph, random, conv.w)}, deep, {activation("relu")});
        for (const ValueIndex x : {convolved, graph.input(deep)})
          graph.output(
              graph.node(Kind::kDepthToSpace, {x}, wide, {{"rows", integer(rows)}, {"columns", integer(columns)}}));
      });
    }
}

}  // namespace

std::vector<OperatorCase> operator_cases() {
  Cases cases;
  add_convolutions(cases);
  add_joined_images(cases);
  add_convolution_fusions(cases);
  add_layout_meetings(cases);
  add_matmuls(cases);
  add_pools(cases);
  add_elementwise(cases);
  add_binary(cases);
  add_normalizations(cases);
  add_attention(cases);
  add_reductions(cases);
  add_movements(cases);
  add_along_dimension(cases);
  add_recurrent(cases);
  add_tree_ensembles(cases);
  add_pair_couplings(cases);
  add_resizes(cases);
  add_depth_to_space(cases);
  return cases.take();
}

}  // namespace foliot
