#include "engine/compiler/slow_operators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace foliot {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Ten operators could be expected to take 1 ms each by these.
constexpr OperatorRates kMeasuredRates{.products_per_second = 1e9, .bytes_per_second = 8e9};
constexpr int64_t kElements = 1'000'000;

Operator operation(OperatorKind kind, std::string name) {
  Operator result{.kind = kind, .name = std::move(name), .inputs = {0}, .outputs = {1}};
  result.kernel = "simple:any";
  return result;
}

Plan plan_of(std::vector<Operator> operators) {
  Plan plan{.batch_size = 4};
  plan.tensors = {{.name = "x", .shape = {1, kElements}}, {.name = "y", .shape = {1, kElements}}};
  plan.operators = std::move(operators);
  return plan;
}

TEST(SlowOperatorsTest, NamesWhatTakesTenTimesAsLong) {
  const Plan plan = plan_of({operation(OperatorKind::kUnary, "quick"), operation(OperatorKind::kUnary, "slow"),
                             operation(OperatorKind::kTopK, "uneven")});
  const PlanDurations durations{
      .whole = Duration::milliseconds(119),
      .operators = {Duration::milliseconds(9), Duration::milliseconds(10), Duration::milliseconds(100)}};
  EXPECT_THAT(find_slow_operators(plan, durations, kMeasuredRates),
              ElementsAre(AllOf(HasSubstr("node 'slow' (Unary, batch 4) takes 10 ms, 10 times"),
                                HasSubstr("simple:any is slow here"))));
}

TEST(SlowOperatorsTest, NamesFew) {
  std::vector<Operator> operators;
  std::vector<Duration> taken;
  for (int i = 0; i < 7; ++i) {
    operators.push_back(operation(OperatorKind::kUnary, std::to_string(i)));
    taken.push_back(Duration::milliseconds(20 + i));
  }
  const auto slow =
      find_slow_operators(plan_of(std::move(operators)), {.whole = {}, .operators = taken}, kMeasuredRates);
  EXPECT_THAT(slow, ElementsAre(HasSubstr("'6'"), HasSubstr("'5'"), HasSubstr("'4'"), HasSubstr("'3'"),
                                HasSubstr("3 other operators")));
}

TEST(SlowOperatorsTest, LeavesOutWhatIsShort) {
  const Plan plan = plan_of({operation(OperatorKind::kUnary, "short")});
  OperatorRates fast = kMeasuredRates;
  fast.bytes_per_second *= 1000;
  const Duration just_below = kSlowOperatorMin - Duration::nanoseconds(1);
  EXPECT_THAT(find_slow_operators(plan, {.whole = just_below, .operators = {just_below}}, fast), IsEmpty());
  EXPECT_EQ(find_slow_operators(plan, {.whole = kSlowOperatorMin, .operators = {kSlowOperatorMin}}, fast).size(), 1u);
}

}  // namespace
}  // namespace foliot
