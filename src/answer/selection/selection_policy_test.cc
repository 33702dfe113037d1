// One suite that every policy passes, and what each does besides.
#include "answer/selection/selection_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "answer/selection/policies.h"

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<std::string> kModels{"a", "b", "c", "d", "e"};

std::unique_ptr<SelectionPolicy> make_policy(std::string_view name, std::string_view options = "",
                                             std::span<const std::string> models = kModels) {
  const toml::table table = toml::parse(options);
  TomlReader reader(table, "application.toml");
  auto policy = find_selection_policy(name)->make({models, reader});
  EXPECT_TRUE(reader.finish().ok());
  return policy;
}

std::string error_of(std::string_view name, std::string_view options) {
  const toml::table table = toml::parse(options);
  TomlReader reader(table, "application.toml");
  find_selection_policy(name)->make({kModels, reader});
  return reader.finish().message();
}

using Losses = std::vector<std::optional<double>>;

// ---- Every policy

class EverySelectionPolicy : public testing::TestWithParam<RegisteredSelectionPolicy> {
 protected:
  // Feedback on what is selected: the models fail in `rates` of the cases.
  std::vector<uint32_t> learn(SelectionState& state, size_t feedbacks, Random& random,
                              const std::vector<double>& rates) {
    std::vector<uint32_t> first;
    for (size_t i = 0; i < feedbacks; ++i) {
      const Selection selected = policy_->select(state, all_, random);
      first.push_back(selected.models.front());
      Losses losses(kModels.size());
      for (const uint32_t model : selected.models) losses[model] = random.uniform() < rates[model] ? 1 : 0;
      EXPECT_TRUE(policy_->observe(state, selected, losses).ok());
    }
    return first;
  }

  const std::unique_ptr<SelectionPolicy> policy_ = make_policy(GetParam().name);
  const SelectionPolicy::Available all_ = SelectionPolicy::Available(kModels.size(), true);
};

INSTANTIATE_TEST_SUITE_P(Policies, EverySelectionPolicy,
                         testing::ValuesIn(selection_policies().begin(), selection_policies().end()),
                         [](const auto& policy) { return std::string(policy.param.name); });

TEST_P(EverySelectionPolicy, StatesStayFinite) {
  Random random(1);
  for (const double loss : {1.0, 0.0}) {
    SelectionState state = policy_->init();
    const Losses losses(kModels.size(), loss);
    for (int i = 0; i < 1'000'000; ++i) {
      ASSERT_TRUE(policy_->observe(state, policy_->select(state, all_, random), losses).ok());
    }
    for (const double value : state.values) EXPECT_TRUE(std::isfinite(value));
    EXPECT_TRUE(policy_->parse(to_bytes(state)).ok());
  }
}

TEST_P(EverySelectionPolicy, WeightsSumToOneOverWhatIsAvailable) {
  Random random(2);
  SelectionState state = policy_->init();
  for (uint32_t mask = 1; mask < 32; ++mask) {
    SelectionPolicy::Available available(kModels.size());
    for (uint32_t model = 0; model < kModels.size(); ++model) available[model] = (mask >> model & 1) != 0;
    const Selection selected = policy_->select(state, available, random);
    ASSERT_FALSE(selected.models.empty());
    EXPECT_EQ(selected.models.size() > 1, GetParam().asks_several && (mask & (mask - 1)) != 0);
    EXPECT_TRUE(std::ranges::is_sorted(selected.models));
    EXPECT_NEAR(std::accumulate(selected.weights.begin(), selected.weights.end(), 0.0), 1, 1e-9);
    for (const uint32_t model : selected.models) EXPECT_TRUE(available[model]) << "it was withdrawn";
    for (uint32_t model = 0; model < kModels.size(); ++model) {
      EXPECT_GE(selected.weights[model], 0);
      if (available[model]) continue;
      EXPECT_EQ(selected.weights[model], 0);
    }
    learn(state, 100, random, {1, 0.5, 0, 0.2, 0.9});
  }
}

TEST_P(EverySelectionPolicy, OneSeedGivesTheSameChoices) {
  const std::vector<double> rates{0.4, 0.3, 0.2, 0.3, 0.4};
  Random one(3);
  Random two(3);
  SelectionState first = policy_->init();
  SelectionState second = policy_->init();
  EXPECT_EQ(learn(first, 1000, one, rates), learn(second, 1000, two, rates));
  EXPECT_EQ(first, second);
}

TEST_P(EverySelectionPolicy, StatesAreKeptAndRestored) {
  Random random(4);
  SelectionState state = policy_->init();
  learn(state, 100, random, {0.4, 0.3, 0.2, 0.3, 0.4});
  const Result<SelectionState> parsed = policy_->parse(to_bytes(state));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(*parsed, state);
  EXPECT_FALSE(policy_->parse(to_bytes(state) + "x").ok());
  if (state.values.empty()) return;
  state.values.back() = NAN;
  EXPECT_THAT(policy_->parse(to_bytes(state)).status().message(), HasSubstr("not a number"));
}

TEST_P(EverySelectionPolicy, LossesAreClippedAndNaNIsRefused) {
  Random random(5);
  SelectionState state = policy_->init();
  const Selection selected = policy_->select(state, all_, random);
  const SelectionState before = state;
  const Status status = policy_->observe(state, selected, Losses(kModels.size(), NAN));
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(state, before);
  for (const double hostile : {1e300, double{INFINITY}, -1e300}) {
    const double clipped = hostile > 0 ? 1 : 0;
    SelectionState one = before;
    SelectionState two = before;
    ASSERT_TRUE(policy_->observe(one, selected, Losses(kModels.size(), hostile)).ok());
    ASSERT_TRUE(policy_->observe(two, selected, Losses(kModels.size(), clipped)).ok());
    EXPECT_EQ(one, two);
  }
}

TEST_P(EverySelectionPolicy, LossesOfModelsThatWereNotAskedAreIgnored) {
  Random random(6);
  SelectionState state = policy_->init();
  const SelectionPolicy::Available some{true, false, false, false, false};
  const Selection selected = policy_->select(state, some, random);
  SelectionState lied = state;
  ASSERT_TRUE(policy_->observe(state, selected, Losses{0.5, {}, {}, {}, {}}).ok());
  ASSERT_TRUE(policy_->observe(lied, selected, Losses{0.5, 1, 1, 1, 1}).ok());
  EXPECT_EQ(state, lied);
}

TEST_P(EverySelectionPolicy, OneModelIsEnough) {
  Random random(7);
  const auto policy = make_policy(GetParam().name, "", std::span(kModels).first(1));
  SelectionState state = policy->init();
  for (int i = 0; i < 100; ++i) {
    const Selection selected = policy->select(state, {true}, random);
    EXPECT_THAT(selected.models, ElementsAre(0u));
    EXPECT_THAT(selected.weights, ElementsAre(1.0));
    ASSERT_TRUE(policy->observe(state, selected, Losses{1.0}).ok());
  }
}

TEST_P(EverySelectionPolicy, UnknownOptionsAreErrors) {
  EXPECT_THAT(error_of(GetParam().name, "nothing = 1"), HasSubstr("nothing"));
}

// ---- Policies that learn

class LearningPolicy : public EverySelectionPolicy {};

INSTANTIATE_TEST_SUITE_P(Policies, LearningPolicy,
                         testing::Values(*find_selection_policy("epsilon_greedy"), *find_selection_policy("ucb1"),
                                         *find_selection_policy("thompson"), *find_selection_policy("exp3")),
                         [](const auto& policy) { return std::string(policy.param.name); });

TEST_P(LearningPolicy, FindsTheBestModelAndTheNextWhenItBreaks) {
  Random random(8);
  SelectionState state = policy_->init();
  const auto share_of = [&](uint32_t model, const std::vector<double>& rates) {
    learn(state, 10'000, random, rates);
    const std::vector<uint32_t> selected = learn(state, 2000, random, rates);
    return static_cast<double>(std::ranges::count(selected, model)) / 2000;
  };
  EXPECT_GT(share_of(2, {0.8, 0.7, 0.1, 0.6, 0.9}), 0.6);
  EXPECT_GT(share_of(3, {0.8, 0.7, 0.9, 0.1, 0.9}), 0.6) << "the second best";
  EXPECT_GT(share_of(2, {0.8, 0.7, 0.1, 0.6, 0.9}), 0.6) << "it recovered";
}

// ---- Each policy

TEST(SelectionPoliciesTest, UnknownNamesAreErrorsThatNameTheKnown) {
  EXPECT_THAT(find_selection_policy("exp5").status().message(), AllOf(HasSubstr("'exp5'"), HasSubstr("exp3, exp4")));
}

TEST(SelectionPoliciesTest, StaticIsTheModelThatIsNamed) {
  Random random(1);
  EXPECT_THAT(make_policy("static")->select({}, {true, true, true, true, true}, random).models, ElementsAre(0u));
  const auto policy = make_policy("static", "model = 'c'");
  EXPECT_THAT(policy->select({}, {true, true, true, true, true}, random).models, ElementsAre(2u));
  EXPECT_THAT(policy->select({}, {false, true, false, true, true}, random).models, ElementsAre(1u));
  EXPECT_THAT(error_of("static", "model = 'z'"), HasSubstr("one of the application's models"));
}

TEST(SelectionPoliciesTest, SplitFollowsItsWeights) {
  Random random(1);
  const auto policy = make_policy("split", "weights = { a = 95, b = 5 }");
  std::vector<int> counts(kModels.size());
  for (int i = 0; i < 10'000; ++i) {
    ++counts[policy->select({}, SelectionPolicy::Available(kModels.size(), true), random).models.front()];
  }
  EXPECT_NEAR(counts[1], 500, 100);
  EXPECT_EQ(counts[0] + counts[1], 10'000);
  EXPECT_THAT(error_of("split", "weights = { a = -1 }"), HasSubstr("'a'"));
  EXPECT_THAT(error_of("split", "weights = { z = 1 }"), HasSubstr("z"));
  EXPECT_THAT(error_of("split", "weights = { a = 0 }"), HasSubstr("above 0"));
}

TEST(SelectionPoliciesTest, Exp3IsTheThesisWithoutForgetting) {
  Random random(1);
  const auto policy = make_policy("exp3", "eta = 0.1\nfloor = 0\nshare = 0");
  SelectionState state = policy->init();
  const SelectionPolicy::Available all(kModels.size(), true);
  std::vector<double> weights(kModels.size(), 1);  // s_i of the thesis
  for (int i = 0; i < 200; ++i) {
    const Selection selected = policy->select(state, all, random);
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    const uint32_t model = selected.models.front();
    for (uint32_t j = 0; j < kModels.size(); ++j) EXPECT_NEAR(selected.weights[j], weights[j] / sum, 1e-9);
    const double loss = model == 2 ? 0.1 : 0.6;
    Losses losses(kModels.size());
    losses[model] = loss;
    ASSERT_TRUE(policy->observe(state, selected, losses).ok());
    weights[model] *= std::exp(-0.1 * loss / (weights[model] / sum));
  }
}

TEST(SelectionPoliciesTest, Exp3KeepsAFloor) {
  Random random(1);
  const auto policy = make_policy("exp3");
  SelectionState state = policy->init();
  state.values = {0, -100, -100, -100, -100, 0};
  const Selection selected = policy->select(state, SelectionPolicy::Available(kModels.size(), true), random);
  EXPECT_NEAR(selected.weights[1], 0.002, 1e-9);
  EXPECT_NEAR(selected.weights[0], 0.992, 1e-9);
}

TEST(SelectionPoliciesTest, Exp4IsTheThesisWithoutForgetting) {
  Random random(1);
  const auto policy = make_policy("exp4", "eta = 0.1\ndiscount = 1");
  SelectionState state = policy->init();
  const SelectionPolicy::Available all(kModels.size(), true);
  const Losses losses{0.0, 0.5, 1.0, 0.25, 0.75};
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(policy->observe(state, policy->select(state, all, random), losses).ok());
  const Selection selected = policy->select(state, all, random);
  for (uint32_t j = 0; j < kModels.size(); ++j) {
    EXPECT_NEAR(selected.weights[j] / selected.weights[0], std::exp(-0.3 * *losses[j]), 1e-9);
  }
}

TEST(SelectionPoliciesTest, AModelWhoseLossIsUnknownKeepsItsRank) {
  Random random(1);
  const auto policy = make_policy("exp4", "discount = 1");
  SelectionState state = policy->init();
  const SelectionPolicy::Available all(kModels.size(), true);
  ASSERT_TRUE(policy->observe(state, policy->select(state, all, random), Losses{0.0, 0.4, {}, 0.8, 0.4}).ok());
  EXPECT_LT(state.values[2], state.values[0]);
  EXPECT_GT(state.values[2], state.values[3]);
}

}  // namespace
}  // namespace foliot
