#include "engine/device/conformance/block_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/device/block_weights.h"

namespace foliot {
namespace {

struct BlockCase {
  Shape x;
  BlockWeights weights;
  bool rounds = false, has_zero_points = false, has_bias = false;
};

void build(const BlockCase& of, CaseGraphBuilder& graph, Random& random) {
  const BlockWeights& weights = of.weights;
  const auto constant = [&](DataType type, const Shape& shape, Range range) {
    return graph.constant(random_array(type, shape, random, range));
  };
  std::vector<ValueIndex> inputs{graph.input(of.x), constant(DataType::kUint8, weights.codes_shape(), {0, 255}),
                                 constant(DataType::kFloat32, weights.scales_shape(), {-0.01, 0.01})};
  const double code_max = static_cast<double>(2 * weights.middle() - 1);
  inputs.push_back(of.has_zero_points ? constant(DataType::kUint8, weights.scales_shape(), {0, code_max}) : kNoValue);
  if (of.has_bias) inputs.push_back(constant(DataType::kFloat32, {weights.columns}, {-1, 1}));
  Shape result = of.x;
  result.back() = weights.columns;
  graph.output(graph.node(OperatorKind::kBlockMatMul, std::move(inputs), result,
                          {{"bits", weights.bits}, {"block", weights.block}, {"rounds", int64_t{of.rounds ? 1 : 0}}}));
}

}  // namespace

std::vector<OperatorCase> block_cases() {
  std::vector<OperatorCase> cases;
  const auto add = [&](const BlockCase& of) {
    const BlockWeights& weights = of.weights;
    std::string name =
        fmt::format("block_matmul_{}x{}x{}_of_{}_bits_by_{}", element_count(of.x) / static_cast<uint64_t>(of.x.back()),
                    weights.depth, weights.columns, weights.bits, weights.block);
    if (of.rounds) name += "_rounded";
    if (of.has_zero_points) name += "_zero_points";
    if (of.has_bias) name += "_bias";
    cases.push_back({std::move(name), [of](CaseGraphBuilder& graph, Random& random) { build(of, graph, random); }, {}});
  };
  for (const int64_t bits : {4, 8}) {
    for (const bool rounds : {false, true}) {
      // Panels and words that are whole and that are not; blocks that are cut; alone, few and many rows.
      add({{1, 96}, {.depth = 96, .columns = 64, .block = 32, .bits = bits}, rounds});
      add({{3, 77}, {.depth = 77, .columns = 21, .block = 16, .bits = bits}, rounds, true, true});
      add({{2, 5, 131}, {.depth = 131, .columns = 150, .block = 64, .bits = bits}, rounds, false, true});
      add({{17, 300}, {.depth = 300, .columns = 90, .block = 128, .bits = bits}, rounds, true});
      // Enough work for two threads.
      add({{9, 260}, {.depth = 260, .columns = 200, .block = 32, .bits = bits}, rounds, true, true});
    }
  }
  return cases;
}

}  // namespace foliot
