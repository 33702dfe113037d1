// The experiment of Clipper's figure 3.8 over the policies alone: of five models the best one
// is broken for a quarter of the calls. Feedback comes at once.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "answer/selection/combiner.h"
#include "answer/selection/policies.h"
#include "answer/selection/tensor_values.h"

namespace foliot {
namespace {

constexpr int kCalls = 20'000;
constexpr int kBreaks = 5'000;
constexpr int kRecovers = 10'000;
constexpr uint64_t kSeeds = 20;
constexpr uint64_t kFirstSeed = 101;  // defaults were chosen by others, 1 to 20
constexpr uint64_t kClasses = 10;
const std::vector<double> kErrorRates{0.45, 0.3875, 0.325, 0.2625, 0.20};
const std::vector<std::string> kFailingModels{"m1", "m2", "m3", "m4", "m5"};

struct FailureErrors {
  double policy = 0;
  std::vector<double> models = std::vector<double>(kErrorRates.size());  // static

  double best_model() const { return *std::ranges::min_element(models); }
};

// The truth is class 0.
Prediction draw_label(double error_rate, Random& random) {
  const uint64_t label = random.uniform() < error_rate ? 1 + random.below(kClasses - 1) : 0;
  const std::vector<double> value{static_cast<double>(label)};
  return {{{{"label", DataType::kInt64, {}, {}}, {1}, false, from_doubles(DataType::kInt64, value)}}};
}

FailureErrors run_failure(std::string_view policy_name, std::string_view options, uint64_t seed) {
  const toml::table table = toml::parse(options);
  TomlReader reader(table, "options");
  const auto policy = find_selection_policy(policy_name)->make({kFailingModels, reader});
  FOLIOT_CHECK(reader.finish().ok());
  Random world(seed);
  Random random = world.fork();
  SelectionState state = policy->init();
  FailureErrors errors;
  const std::vector<double> truth{0};
  for (int call = 0; call < kCalls; ++call) {
    const bool broken = call >= kBreaks && call < kRecovers;
    std::vector<Prediction> predictions;
    std::vector<double> losses;
    for (size_t model = 0; model < kErrorRates.size(); ++model) {
      const bool fails = broken && model + 1 == kErrorRates.size();
      predictions.push_back(draw_label(fails ? 1 - 1.0 / kClasses : kErrorRates[model], world));
      losses.push_back(*loss_of({}, predictions.back().outputs.front(), truth));
      errors.models[model] += losses.back() / kCalls;
    }
    const Selection selected = policy->select(state, {true, true, true, true, true}, random);
    std::vector<MemberAnswer> answers;
    std::vector<std::optional<double>> known(kErrorRates.size());
    for (const uint32_t model : selected.models) {
      answers.push_back({selected.weights[model], &predictions[model]});
      known[model] = losses[model];
    }
    const Combination combined = combine({}, true, answers);
    errors.policy += *loss_of({}, combined.prediction.outputs.front(), truth) / kCalls;
    FOLIOT_CHECK(policy->observe(state, selected, known).ok());
  }
  return errors;
}

// In how many seeds the policy errs less than the best model alone; prints the means.
uint64_t count_wins(std::string_view policy, std::string_view options = "") {
  uint64_t wins = 0;
  double mean = 0;
  double best = 0;
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + kSeeds; ++seed) {
    const FailureErrors errors = run_failure(policy, options, seed);
    wins += errors.policy < errors.best_model() ? 1 : 0;
    mean += errors.policy / kSeeds;
    best += errors.best_model() / kSeeds;
  }
  fmt::print("{:15} {:30} error {:.4f}, best model {:.4f}, below it in {} of {} seeds\n", policy, options, mean, best,
             wins, kSeeds);
  return wins;
}

TEST(ModelFailureTest, Exp3ErrsLessThanTheBestModel) { EXPECT_EQ(count_wins("exp3"), kSeeds); }
TEST(ModelFailureTest, Exp4ErrsLessThanTheBestModel) { EXPECT_EQ(count_wins("exp4"), kSeeds); }

// What forgetting is for.
TEST(ModelFailureTest, OthersNeedToForget) {
  for (const char* policy : {"epsilon_greedy", "thompson"}) {
    EXPECT_EQ(count_wins(policy), kSeeds);
    EXPECT_LT(count_wins(policy, "discount = 1"), kSeeds / 2);
  }
  EXPECT_EQ(count_wins("ucb1"), kSeeds);
}

}  // namespace
}  // namespace foliot
