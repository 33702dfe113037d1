#include "control/fleet/scalers/greedy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "control/fleet/scalers/test_problems.h"
#include "control/fleet/solvers/cbc_solver.h"
#include "control/fleet/solvers/highs_solver.h"

namespace foliot {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr Duration kLimit = Duration::seconds(10);

class FailingSolver : public Solver {
 public:
  Result<ScalingPlan> solve(const ScalingProblem&, Duration) override { return Status::unavailable("gone"); }
};

TEST(Table3Test, TheProgramFindsThePapersConfigurations) {
  CbcSolver cbc;
  EXPECT_THAT(cbc.solve(table_2(10, 300), kLimit)->deltas, ElementsAre(2, 0, 0));
  EXPECT_THAT(cbc.solve(table_2(10, 50), kLimit)->deltas, ElementsAre(0, 1, 0));
  const auto last = cbc.solve(table_2(1000, 300), kLimit);
  EXPECT_THAT(last->deltas, ElementsAre(0, 2, 1));
  EXPECT_EQ(last->cost, 22'000'000);
  EXPECT_TRUE(last->optimal);
}

TEST(Table3Test, SoDoesGreedyMixed) {
  GreedyMixedSolver greedy;
  EXPECT_THAT(greedy.solve(table_2(10, 300), kLimit)->deltas, ElementsAre(2, 0, 0));
  EXPECT_THAT(greedy.solve(table_2(10, 50), kLimit)->deltas, ElementsAre(0, 1, 0));
  EXPECT_THAT(greedy.solve(table_2(1000, 300), kLimit)->deltas, ElementsAre(0, 2, 1));
}

TEST(Table3Test, GreedyTakesOneVariant) {
  GreedySolver greedy;
  EXPECT_THAT(greedy.solve(table_2(10, 300), kLimit)->deltas, ElementsAre(2, 0, 0));
  EXPECT_THAT(greedy.solve(table_2(10, 50), kLimit)->deltas, ElementsAre(0, 1, 0));
  const auto last = greedy.solve(table_2(1000, 300), kLimit);
  EXPECT_THAT(last->deltas, ElementsAre(0, 10, 0));
  EXPECT_EQ(last->cost, 30'000'000) << "the table's next cheapest, 32, is not";
}

TEST(GreedyTest, ReplicatesWhatRunsOrUpgradesWhicheverCostsLess) {
  GreedySolver greedy;
  ScalingProblem problem = table_2(12, 300);
  problem.variants[0].running = 2;
  EXPECT_THAT(greedy.solve(problem, kLimit)->deltas, ElementsAre(1, 0, 0));
  problem.load = 60;
  EXPECT_THAT(greedy.solve(problem, kLimit)->deltas, ElementsAre(-2, 1, 0));
  // LOADs that take long are worth less replicas of what is loaded, however dear.
  problem.lambda = 10;
  problem.variants[1].load = Duration::seconds(100);
  EXPECT_THAT(greedy.solve(problem, kLimit)->deltas, ElementsAre(10, 0, 0));
  problem.lambda = 0;
  problem.variants[1].architecture = "vgg16";
  EXPECT_THAT(greedy.solve(problem, kLimit)->deltas, ElementsAre(10, 0, 0)) << "another architecture";
}

TEST(GreedyTest, ScalesDownByAnInstanceOrToACheaperVariant) {
  GreedySolver greedy;
  ScalingProblem problem = table_2(150, 300);
  problem.variants[1].running = 3;
  EXPECT_THAT(greedy.solve(problem, kLimit)->deltas, ElementsAre(0, -1, 0));
  problem.load = 10;
  EXPECT_THAT(greedy.solve(problem, kLimit)->deltas, ElementsAre(2, -3, 0));
  problem.load = 0;
  EXPECT_THAT(greedy.solve(problem, kLimit)->deltas, ElementsAre(0, -3, 0));
}

TEST(SolversTest, RefuseWhatCannotBe) {
  GreedySolver greedy;
  GreedyMixedSolver mixed;
  CbcSolver cbc;
  for (Solver* solver : {static_cast<Solver*>(&greedy), static_cast<Solver*>(&mixed), static_cast<Solver*>(&cbc)}) {
    ScalingProblem problem = table_2(10, 300);
    problem.resources = {{"cpu cores", 7}};
    for (ScalableVariant& variant : problem.variants) variant.needs = {4};
    EXPECT_THAT(solver->solve(problem, kLimit)->deltas, ElementsAre(0, 1, 0));
    problem.resources[0].total = 3;
    EXPECT_EQ(solver->solve(problem, kLimit).status().code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(solver->solve(problem, kLimit).status().message(), HasSubstr("10 queries per second; add devices"));
    EXPECT_EQ(solver->solve(table_2(10, 10), kLimit).status().code(), StatusCode::kResourceExhausted);
    problem.variants[1].saturation = 0;
    EXPECT_THAT(solver->solve(problem, kLimit).status().message(), HasSubstr("variant 'B': saturation is 0"));
    EXPECT_THAT(solver->solve(table_2(-1, 10), kLimit).status().message(), HasSubstr("load is -1"));
  }
}

TEST(SolversTest, WhatFailsIsFollowedByGreedy) {
  FailingSolver failing;
  GreedyMixedSolver greedy;
  FallbackSolver solver(failing, greedy);
  EXPECT_THAT(solver.solve(table_2(1000, 300), kLimit)->deltas, ElementsAre(0, 2, 1));
  EXPECT_EQ(solver.fallbacks(), 1u);
  EXPECT_EQ(solver.last_failure().message(), "gone");
  CbcSolver cbc;
  FallbackSolver works(cbc, failing);
  EXPECT_EQ(works.solve(table_2(1000, 10), kLimit).status().code(), StatusCode::kResourceExhausted)
      << "nothing that another could do better";
}

TEST(SolversTest, ATimeLimitIsKeptOrNamed) {
  Random random(1);
  ScalingProblem problem = random_problem(random, 100, 8);
  for (ScalableResource& resource : problem.resources) resource.total = 1'000'000;
  const auto plan = CbcSolver().solve(problem, Duration());
  if (plan.ok()) {
    EXPECT_TRUE(check_deltas(problem, plan->deltas).ok());
  } else {
    EXPECT_EQ(plan.status().code(), StatusCode::kUnavailable) << plan.status().message();
  }
}

// Gaps are of what the fleet costs afterwards, LOADs included.
TEST(SolversTest, GreedyMixedIsNearTheLeastCost) {
  CbcSolver cbc;
  GreedySolver greedy;
  GreedyMixedSolver mixed;
  std::vector<double> gaps, mixed_gaps;
  int failures = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    const ScalingProblem problem = random_problem(random, 1 + static_cast<int>(random.below(12)), 8);
    const auto best = cbc.solve(problem, kLimit);
    const auto of_mixed = mixed.solve(problem, kLimit);
    const auto of_greedy = greedy.solve(problem, kLimit);
    if (!best.ok()) {
      EXPECT_EQ(best.status().code(), StatusCode::kResourceExhausted) << best.status().message();
      EXPECT_FALSE(of_mixed.ok());
      EXPECT_FALSE(of_greedy.ok());
      continue;
    }
    ASSERT_TRUE(best->optimal);
    const double base = static_cast<double>(running_cost(problem, ScalingDeltas(problem.variants.size(), 0)));
    const auto gap = [&](const ScalingPlan& plan) {
      EXPECT_TRUE(check_deltas(problem, plan.deltas).ok());
      EXPECT_EQ(plan.cost, cost_of(problem, plan.deltas));
      EXPECT_GE(plan.cost, best->cost) << "seed " << seed;
      return static_cast<double>(plan.cost - best->cost) / std::max(1.0, base + static_cast<double>(best->cost));
    };
    if (of_mixed.ok()) {
      mixed_gaps.push_back(gap(*of_mixed));
    } else {
      ++failures;
    }
    if (of_greedy.ok()) gaps.push_back(gap(*of_greedy));
  }
  std::ranges::sort(gaps);
  std::ranges::sort(mixed_gaps);
  ASSERT_GT(mixed_gaps.size(), 60u);
  for (const auto& [name, sorted] : {std::pair{"greedy", &gaps}, {"greedy_mixed", &mixed_gaps}}) {
    RecordProperty(std::string(name) + "_states", static_cast<int>(sorted->size()));
    printf("%s: %zu states; gap p50 %.2f %%, p90 %.2f %%, most %.2f %%\n", name, sorted->size(),
           100 * (*sorted)[sorted->size() / 2], 100 * (*sorted)[sorted->size() * 9 / 10], 100 * sorted->back());
  }
  printf("greedy_mixed found nothing where there is something: %d\n", failures);
  EXPECT_LE(mixed_gaps[mixed_gaps.size() / 2], 0.05);
  EXPECT_LE(failures, 5);
}

HighsOptions highs() {
  return {.command = {".venv/bin/python", "-m", "foliot_tools.highs"}, .environment = {"PYTHONPATH=python"}};
}

TEST(HighsSolverTest, AgreesWithCbc) {
  HighsSolver solver(highs());
  const auto table = solver.solve(table_2(1000, 300), kLimit);
  if (!table.ok() && table.status().message().find("No module named") != std::string::npos) {
    GTEST_SKIP() << "highspy is not in .venv";
  }
  ASSERT_TRUE(table.ok()) << table.status().message();
  EXPECT_THAT(table->deltas, ElementsAre(0, 2, 1));
  EXPECT_TRUE(table->optimal);
  EXPECT_EQ(solver.solve(table_2(1000, 10), kLimit).status().code(), StatusCode::kResourceExhausted);
  CbcSolver cbc;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    Random random(seed);
    const ScalingProblem problem = random_problem(random, 8, 8);
    const auto expected = cbc.solve(problem, kLimit);
    const auto found = solver.solve(problem, kLimit);
    ASSERT_EQ(found.ok(), expected.ok()) << found.status().message() << expected.status().message();
    if (found.ok()) {
      EXPECT_EQ(found->cost, expected->cost);
    }
  }
}

TEST(HighsSolverTest, AbsentKilledLateAndWrongAreNamed) {
  const auto reason = [](std::vector<std::string> command) {
    HighsSolver solver({.command = std::move(command), .start_most = Duration::milliseconds(200)});
    const auto plan = solver.solve(table_2(10, 300), Duration());
    EXPECT_EQ(plan.status().code(), StatusCode::kUnavailable);
    return plan.status().message();
  };
  EXPECT_THAT(reason({"/nowhere/python"}), HasSubstr("HiGHS cannot be started"));
  EXPECT_THAT(reason({"/bin/sh", "-c", "kill -9 $$"}), HasSubstr("HiGHS ended with signal 9"));
  EXPECT_THAT(reason({"/bin/sleep", "100"}), HasSubstr("did not answer within 0.2 s, and was killed"));
  EXPECT_THAT(reason({"/bin/echo", "[1, 2"}), HasSubstr("HiGHS gave no answer"));
  EXPECT_THAT(reason({"/bin/echo", R"({"status": "unbounded"})"}), HasSubstr("HiGHS found nothing: unbounded"));
  EXPECT_THAT(reason({"/bin/echo", R"({"status": "optimal", "values": [1]})"}), HasSubstr("1 values for 3 columns"));
  EXPECT_THAT(reason({"/bin/echo", R"({"status": "optimal", "values": [0, null, 0]})"}), HasSubstr("not a number"));
  EXPECT_THAT(reason({"/bin/echo", R"({"status": "optimal", "values": [1, 0, 0]})"}), HasSubstr("breaks a constraint"));
}

}  // namespace
}  // namespace foliot
