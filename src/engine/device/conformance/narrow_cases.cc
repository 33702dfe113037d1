#include "engine/device/conformance/narrow_cases.h"

#include <string>
#include <utility>

namespace foliot {
namespace {

using Kind = OperatorKind;
using Ints = std::vector<int64_t>;

constexpr auto kPlain = DataType::kFloat32;
constexpr auto kBrain = DataType::kBfloat16;
constexpr auto kByte = DataType::kUint8;
constexpr auto kSigned = DataType::kInt8;

// Writes one case: values of the types that are tested come from casts or are
// constants, so that inputs and outputs are float32 or bytes.
class Writer {
 public:
  Writer(CaseGraphBuilder& graph, Random& random) : graph_(graph), random_(random) {}

  ValueIndex brain(const Shape& shape) { return to_brain(graph_.input(shape), shape); }
  ValueIndex to_brain(ValueIndex x, const Shape& shape) { return graph_.node(Kind::kCast, {x}, shape, {}, kBrain); }
  ValueIndex to_float(ValueIndex x, const Shape& shape) { return graph_.node(Kind::kCast, {x}, shape, {}, kPlain); }
  ValueIndex bytes(const Shape& shape) { return graph_.constant(random_array(kByte, shape, random_, {0, 255})); }
  // A value that is no constant.
  ValueIndex codes(const Shape& shape, double scale = 0.01, int64_t zero_point = 100) {
    return graph_.node(Kind::kQuantize, {graph_.input(shape)}, shape, {{"scale", scale}, {"zero_point", zero_point}},
                       kByte);
  }
  ValueIndex constant(const Shape& shape, DataType type = kPlain, Range range = {-0.5, 0.5}) {
    return graph_.constant(random_array(type, shape, random_, range));
  }
  ValueIndex weights(const Shape& shape) { return constant(shape, kSigned, {-127, 127}); }
  ValueIndex scale(const Shape& shape) { return constant(shape, kPlain, {1e-4, 4e-4}); }

  ValueIndex convolve(std::vector<ValueIndex> inputs, const Shape& y, int64_t pad, int64_t groups, DataType type,
                      std::vector<PostOperation> post, int64_t stride = 1) {
    return graph_.node(Kind::kConvolution, std::move(inputs), y,
                       {{"strides", Ints{stride, stride}},
                        {"dilations", Ints{1, 1}},
                        {"pads", Ints{pad, pad, pad, pad}},
                        {"groups", groups}},
                       type, std::move(post));
  }
  ValueIndex multiply(std::vector<ValueIndex> inputs, const Shape& y, bool turned, DataType type,
                      std::vector<PostOperation> post = {}) {
    return graph_.node(Kind::kMatMul, std::move(inputs), y,
                       {{"transpose_a", int64_t{0}}, {"transpose_b", int64_t{turned}}, {"alpha", 1.0}}, type,
                       std::move(post));
  }
  ValueIndex pool(Kind kind, ValueIndex x, const Shape& y, DataType type) {
    const ValueIndex result = graph_.node(
        kind, {x}, y,
        {{"kernel", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"dilations", Ints{1, 1}}, {"pads", Ints{1, 1, 1, 1}}}, type);
    if (kind == Kind::kAveragePool) graph_.set("count_include_pad", int64_t{0});
    return result;
  }
  void output(ValueIndex value) { graph_.output(value); }
  CaseGraphBuilder& graph() { return graph_; }

 private:
  CaseGraphBuilder& graph_;
  Random& random_;
};

class NarrowCases {
 public:
  template <typename Build>
  void add(std::string name, Build build) {
    cases_.push_back({std::move(name),
                      [build](CaseGraphBuilder& graph, Random& random) {
                        Writer writer(graph, random);
                        build(writer);
                      },
                      {}});
  }
  std::vector<OperatorCase> take() { return std::move(cases_); }

 private:
  std::vector<OperatorCase> cases_;
};

void add_bfloat16(NarrowCases& cases) {
  cases.add("bfloat16_convolutions", [](Writer& w) {
    const Shape x{2, 3, 9, 9}, y{2, 32, 9, 9}, z{2, 32, 9, 9};
    const ValueIndex first = w.convolve({w.brain(x), w.constant({32, 3, 3, 3}, kBrain), w.constant({32})}, y, 1, 1,
                                        kBrain, {activation("relu")});
    const ValueIndex second = w.convolve({first, w.constant({32, 32, 1, 1}, kBrain), w.constant({32}), first}, z, 0, 1,
                                         kBrain, {combination("add", 3), activation("relu")});
    const ValueIndex third = w.convolve({second, w.constant({32, 1, 3, 3}, kBrain)}, z, 1, 32, kBrain, {});
    w.output(w.convolve({third, w.constant({32, 32, 1, 1}, kBrain)}, z, 0, 1, kPlain, {}));
    w.output(w.to_float(second, z));
  });
  cases.add("bfloat16_transposed_convolution", [](Writer& w) {
    const ValueIndex y = w.graph().node(
        Kind::kConvolutionTranspose, {w.brain({1, 16, 4, 4}), w.constant({16, 16, 2, 2}, kBrain)}, {1, 16, 8, 8},
        {{"strides", Ints{2, 2}}, {"dilations", Ints{1, 1}}, {"pads", Ints{0, 0, 0, 0}}, {"groups", int64_t{1}}},
        kBrain);
    w.output(w.to_float(y, {1, 16, 8, 8}));
  });
  cases.add("bfloat16_products", [](Writer& w) {
    const Shape x{2, 6, 32}, y{2, 6, 48};
    const ValueIndex a = w.multiply({w.brain(x), w.constant({32, 48}, kBrain), w.constant({48})}, y, false, kBrain,
                                    {activation("gelu")});
    const ValueIndex b = w.brain(x);
    w.output(w.multiply({a, w.constant({32, 48}, kBrain)}, x, true, kPlain));
    w.output(w.multiply({b, w.brain(x)}, {2, 6, 6}, true, kPlain));
  });
  cases.add("bfloat16_pools", [](Writer& w) {
    for (const int64_t channels : {5, 16}) {
      const Shape x{2, channels, 9, 9}, y{2, channels, 5, 5};
      for (const Kind kind : {Kind::kMaxPool, Kind::kAveragePool})
        w.output(w.to_float(w.pool(kind, w.brain(x), y, kBrain), y));
    }
  });
  cases.add("bfloat16_elementwise", [](Writer& w) {
    const Shape x{2, 16, 3, 3};
    const ValueIndex a = w.brain(x), b = w.brain(x);
    for (const char* function : {"relu", "sigmoid", "erf", "sin"}) {
      const ValueIndex y =
          w.graph().node(Kind::kUnary, {a}, x, {{"function", parse_function(function).value()}}, kBrain);
      w.output(w.to_float(y, x));
    }
    for (const char* function : {"add", "mul", "pow"}) {
      const ValueIndex y = w.graph().node(Kind::kBinary, {a, b}, x, {{"function", parse_function(function).value()}},
                                          kBrain, {activation("relu")});
      if (std::string(function) != "pow") w.output(w.to_float(y, x));
    }
    const ValueIndex row = w.to_brain(w.graph().input({16, 1, 1}), {16, 1, 1});
    w.output(w.to_float(w.graph().node(Kind::kBinary, {a, row}, x, {{"function", Function::kSub}}, kBrain), x));
  });
  cases.add("bfloat16_movements", [](Writer& w) {
    const Shape x{2, 16, 3, 3};
    const ValueIndex a = w.convolve({w.brain(x), w.constant({16, 16, 1, 1}, kBrain)}, x, 0, 1, kBrain, {});
    w.output(w.to_float(w.graph().node(Kind::kConcat, {a, w.brain(x)}, {2, 32, 3, 3}, {{"axis", int64_t{1}}}, kBrain),
                        {2, 32, 3, 3}));
    w.output(
        w.to_float(w.graph().node(Kind::kTranspose, {a}, {2, 3, 3, 16}, {{"permutation", Ints{0, 2, 3, 1}}}, kBrain),
                   {2, 3, 3, 16}));
    w.output(w.to_float(w.graph().node(Kind::kReshape, {a}, {2, 144}, {}, kBrain), {2, 144}));
  });
}

void add_quantized(NarrowCases& cases) {
  cases.add("quantize", [](Writer& w) {
    for (const Shape& shape : {Shape{7}, Shape{2, 3, 5, 4}}) {
      const ValueIndex x = w.codes(shape, 0.004, 128);
      w.output(x);
      w.output(w.graph().node(Kind::kDequantize, {x}, shape, {{"scale", 0.5}, {"zero_point", int64_t{3}}}));
      const ValueIndex y = w.graph().node(Kind::kQuantize, {w.graph().input(shape)}, shape,
                                          {{"scale", 0.006}, {"zero_point", int64_t{-5}}}, kSigned);
      w.output(y);
      w.output(w.graph().node(Kind::kDequantize, {y}, shape, {{"scale", 0.25}, {"zero_point", int64_t{0}}}));
    }
  });
  // Groups of every kind: all channels, some, one.
  for (const auto& kind : {std::pair{"all", 1}, {"grouped", 4}, {"depthwise", 32}})
    cases.add(std::string("quantized_convolution_") + kind.first, [groups = kind.second](Writer& w) {
      const Shape x{2, 32, 7, 7}, y{2, 32, 7, 7};
      const ValueIndex weights = w.weights({32, 32 / groups, 3, 3});
      const ValueIndex bias = w.constant({32}, kPlain, {-20000, 20000});
      w.output(w.convolve({w.codes(x), weights, bias, w.scale({32, 1, 1})}, y, 1, groups, kByte,
                          {combination("mul", 3), activation("linear", 1, 80)}));
      w.output(w.convolve({w.codes(x), weights, bias, w.scale({32, 1, 1})}, y, 1, groups, kPlain,
                          {combination("mul", 3), activation("relu")}));
    });
  cases.add("quantized_first_convolution", [](Writer& w) {
    w.output(w.convolve({w.codes({1, 3, 12, 12}), w.weights({16, 3, 5, 5}), kNoValue, w.scale({16, 1, 1})},
                        {1, 16, 4, 4}, 0, 1, kByte, {combination("mul", 3), activation("linear", 1, 128)}, 2));
  });
  cases.add("quantized_residual", [](Writer& w) {
    const Shape x{1, 32, 6, 6};
    const ValueIndex stem = w.convolve({w.codes(x), w.weights({32, 32, 1, 1}), kNoValue, w.scale({32, 1, 1})}, x, 0, 1,
                                       kByte, {combination("mul", 3), activation("linear", 1, 60)});
    const ValueIndex sum = w.convolve({stem, w.weights({32, 32, 3, 3}), kNoValue, w.scale({32, 1, 1}), stem,
                                       w.constant({1, 1, 1}, kPlain, {0.9, 0.9})},
                                      x, 1, 1, kByte,
                                      {combination("mul", 3), activation("clip", 0, 255), activation("round"),
                                       combination("mul", 5), combination("add", 4), activation("linear", 0.473, -4)});
    w.output(sum);
    w.output(stem);
    const ValueIndex scale = w.constant({1}, kPlain, {0.7, 0.7});
    w.output(w.graph().node(Kind::kBinary, {sum, scale, kNoValue, stem}, x, {{"function", Function::kMul}}, kByte,
                            {combination("add", 3), activation("linear", 0.473, 7)}));
  });
  cases.add("quantized_residual_in_place", [](Writer& w) {
    const Shape x{1, 32, 6, 6};
    const ValueIndex stem = w.convolve({w.codes(x), w.weights({32, 32, 1, 1}), kNoValue, w.scale({32, 1, 1})}, x, 0, 1,
                                       kByte, {combination("mul", 3), activation("linear", 1, 60)});
    const ValueIndex inner = w.convolve({w.codes(x), w.weights({32, 32, 1, 1}), kNoValue, w.scale({32, 1, 1})}, x, 0, 1,
                                        kByte, {combination("mul", 3), activation("linear", 1, 60)});
    w.output(w.pool(Kind::kMaxPool,
                    w.convolve({inner, w.weights({32, 32, 3, 3}), kNoValue, w.scale({32, 1, 1}), stem}, x, 1, 1, kByte,
                               {combination("mul", 3), combination("add", 4), activation("linear", 0.473, -4)}),
                    {1, 32, 3, 3}, kByte));
  });
  cases.add("quantized_products", [](Writer& w) {
    const ValueIndex x = w.codes({3, 5, 64});
    for (const bool turned : {false, true}) {
      const ValueIndex weights = w.weights(turned ? Shape{48, 64} : Shape{64, 48});
      w.output(w.multiply({x, weights, w.constant({48}, kPlain, {-9000, 9000}), w.scale({48})}, {3, 5, 48}, turned,
                          kByte, {combination("mul", 3), activation("linear", 1, 128)}));
      w.output(w.multiply({x, weights, kNoValue, w.scale({48})}, {3, 5, 48}, turned, kPlain,
                          {combination("mul", 3), activation("gelu")}));
    }
  });
  cases.add("quantized_pool", [](Writer& w) {
    for (const int64_t channels : {3, 16})
      w.output(w.pool(Kind::kMaxPool, w.codes({2, channels, 9, 9}), {2, channels, 5, 5}, kByte));
  });
  // Nothing of the kind in oneDNN: in float32 between conversions.
  cases.add("quantized_without_a_kernel", [](Writer& w) {
    const Shape x{2, 8, 5, 5};
    const ValueIndex scale = w.constant({1}, kPlain, {0.7, 0.7});
    w.output(w.graph().node(Kind::kBinary, {w.codes(x), scale}, x, {{"function", Function::kPow}}, kByte,
                            {activation("sin"), activation("linear", 100, 100)}));
  });
}

}  // namespace

std::vector<OperatorCase> narrow_cases() {
  NarrowCases cases;
  add_bfloat16(cases);
  add_quantized(cases);
  return cases.take();
}

}  // namespace foliot
