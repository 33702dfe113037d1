#include "engine/compiler/operator_rates.h"

#include <gtest/gtest.h>

#include "engine/device/cpu/cpu_device.h"

namespace foliot {
namespace {

constexpr OperatorRates kRates{.products_per_second = 1e9, .bytes_per_second = 1e9};

// A plan of one operator over tensors of these shapes, the last one its result.
Plan plan_of(OperatorKind kind, const std::vector<Shape>& shapes) {
  Plan plan;
  Operator operation{.kind = kind};
  for (size_t i = 0; i < shapes.size(); ++i) {
    plan.tensors.push_back({.name = std::to_string(i), .shape = shapes[i]});
    (i + 1 < shapes.size() ? operation.inputs : operation.outputs).push_back(static_cast<TensorIndex>(i));
  }
  operation.attributes.set("transpose_a", int64_t{0});
  plan.operators.push_back(operation);
  return plan;
}

Duration expected(OperatorKind kind, const std::vector<Shape>& shapes) {
  const Plan plan = plan_of(kind, shapes);
  return kRates.expect(plan, plan.operators.front());
}

TEST(OperatorRates, CountsProducts) {
  // 32 x 14 x 14 results of 64 x 3 x 3 products each; of two groups, half of that.
  EXPECT_EQ(expected(OperatorKind::kConvolution, {{1, 64, 14, 14}, {32, 64, 3, 3}, {1, 32, 14, 14}}),
            Duration::nanoseconds(32 * 14 * 14 * 64 * 9));
  EXPECT_EQ(expected(OperatorKind::kConvolution, {{1, 64, 14, 14}, {32, 32, 3, 3}, {1, 32, 14, 14}}),
            Duration::nanoseconds(32 * 14 * 14 * 32 * 9));
  // Each value of the source is multiplied with 32 x 2 x 2.
  EXPECT_EQ(expected(OperatorKind::kConvolutionTranspose, {{1, 64, 14, 14}, {64, 32, 2, 2}, {1, 32, 28, 28}}),
            Duration::nanoseconds(64 * 14 * 14 * 32 * 4));
  EXPECT_EQ(expected(OperatorKind::kMatMul, {{8, 100, 60}, {60, 200}, {8, 100, 200}}),
            Duration::nanoseconds(8 * 100 * 200 * 60));
}

TEST(OperatorRates, CountsBytes) {
  EXPECT_EQ(expected(OperatorKind::kBinary, {{100, 200}, {200}, {100, 200}}),
            Duration::nanoseconds(4 * (2 * 100 * 200 + 200)));
  // Few products of many weights.
  EXPECT_EQ(expected(OperatorKind::kMatMul, {{1, 500}, {500, 300}, {1, 300}}),
            Duration::nanoseconds(4 * (500 + 500 * 300 + 300)));
}

TEST(OperatorRates, ExpectsNothingOfWhatWorksUnevenly) {
  EXPECT_EQ(expected(OperatorKind::kTopK, {{1000}, {10}}), Duration());
}

TEST(OperatorRates, AreMeasured) {
  const auto device = make_cpu_device({.threads = 1, .lock_memory = false});
  const auto rates = measure_rates(*device);
  ASSERT_TRUE(rates.ok()) << rates.status().message();
  EXPECT_GT(rates->products_per_second, 0);
  EXPECT_GT(rates->bytes_per_second, 0);
}

}  // namespace
}  // namespace foliot
