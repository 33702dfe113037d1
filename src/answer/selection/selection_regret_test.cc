// What policies lose beside the best model, over worlds of 2 to 64 models, with seeds of their own in each
// run. The bounds are those of the theory, and not of what was measured.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "answer/selection/policies.h"
#include "foundation/base/test_seed.h"

namespace foliot {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> names_of(size_t models) {
  std::vector<std::string> names;
  for (size_t i = 0; i < models; ++i) names.push_back(fmt::format("m{}", i));
  return names;
}

std::unique_ptr<SelectionPolicy> make_for(size_t models, std::string_view name, std::string_view options = "") {
  const toml::table table = toml::parse(options);
  TomlReader reader(table, "options");
  const std::vector<std::string> names = names_of(models);
  auto policy = find_selection_policy(name)->make({names, reader});
  EXPECT_TRUE(reader.finish().ok());
  return policy;
}

enum class World { kRandom, kEqual, kCorrelated, kNoisy, kDrifting };
std::string_view name_of(World world) {
  switch (world) {
    case World::kRandom: return "random";
    case World::kEqual: return "equal";
    case World::kCorrelated: return "correlated";
    case World::kNoisy: return "noisy";
    case World::kDrifting: return "drifting";
  }
  return "";
}

// Losses of 0 or 1. One model is the best.
class Losing {
 public:
  Losing(World world, size_t models, Random& random) : world_(world), rates_(models), best_(random.below(models)) {
    for (double& rate : rates_) rate = world == World::kEqual ? 0.3 : 0.3 + 0.6 * random.uniform();
    if (world == World::kCorrelated) std::ranges::fill(rates_, 0.3);
  }
  // The best one changes once.
  void drift() { best_ = (best_ + 1) % rates_.size(); }
  uint32_t best() const { return best_; }
  double best_rate() const { return world_ == World::kEqual ? 0.3 : world_ == World::kNoisy ? 0.2 : 0; }
  std::vector<std::optional<double>> draw(Random& random) const {
    std::vector<std::optional<double>> losses;
    const double common = random.uniform();
    for (size_t model = 0; model < rates_.size(); ++model) {
      const double rate = model == best_ ? best_rate() : rates_[model];
      losses.push_back((world_ == World::kCorrelated ? common : random.uniform()) < rate ? 1 : 0);
    }
    return losses;
  }

 private:
  const World world_;
  std::vector<double> rates_;
  uint32_t best_;
};

// Of a weighted vote in which all that are wrong give the same wrong answer: the hardest case.
double loss_of_vote(const Selection& selected, const std::vector<std::optional<double>>& losses) {
  double wrong = 0;
  for (const uint32_t model : selected.models) wrong += selected.weights[model] * *losses[model];
  return selected.models.size() == 1 ? *losses[selected.models.front()] : wrong >= 0.5 ? 1 : 0;
}

// The share of the calls of the last quarter by which more are wrong than of the best model's.
double excess(const SelectionPolicy& policy, World world, size_t models, uint64_t calls, uint64_t seed) {
  Random random(seed);
  Losing losing(world, models, random);
  SelectionState state = policy.init();
  const SelectionPolicy::Available all(models, true);
  double more = 0;
  for (uint64_t call = 0; call < calls; ++call) {
    if (world == World::kDrifting && call == calls / 2) losing.drift();
    const std::vector<std::optional<double>> losses = losing.draw(random);
    const Selection selected = policy.select(state, all, random);
    EXPECT_TRUE(policy.observe(state, selected, losses).ok());
    if (call >= calls * 3 / 4) more += loss_of_vote(selected, losses) - *losses[losing.best()];
  }
  return more / static_cast<double>(calls / 4);
}

class SelectionRegretTest : public testing::TestWithParam<const char*> {
 protected:
  const uint64_t seed_ = fresh_seed();
};

INSTANTIATE_TEST_SUITE_P(Policies, SelectionRegretTest, testing::Values("exp3", "exp4", "thompson", "ucb1"),
                         [](const auto& name) { return std::string(name.param); });

// Beyond 3 points only by the noise of what is counted, of which four standard deviations are allowed.
TEST_P(SelectionRegretTest, TheLastQuarterIsWithinThreePointsOfTheBestModel) {
  for (const size_t models : {2, 10, 50, 64}) {
    // After a drift exp4 needs two of its memories, of 1,280 calls for ten models.
    const uint64_t calls = std::max<uint64_t>(10'000, 500 * models);
    const auto policy = make_for(models, GetParam());
    EXPECT_EQ(policy->caution(), "");
    for (const World world : {World::kRandom, World::kEqual, World::kCorrelated, World::kNoisy, World::kDrifting}) {
      const double noise = 4 * std::sqrt(0.3 / static_cast<double>(calls / 4));
      const bool is_noisy = world == World::kEqual || world == World::kNoisy;
      const double more = excess(*policy, world, models, calls, seed_);
      EXPECT_LE(more, 0.03 + (is_noisy ? noise : 0.002))
          << GetParam() << ", " << models << " models, " << name_of(world) << ", seed " << seed_;
    }
  }
}

// Of losses that an adversary has chosen beforehand: the best model changes from block to block, so that
// what was learned is wrong, and the best in hindsight is beyond reach of none.
TEST(SelectionBoundsTest, Exp3KeepsItsRegretAtEveryTimeUpToItsHorizon) {
  const uint64_t seed = fresh_seed();
  for (const size_t models : {2, 10, 64}) {
    const auto policy = make_for(models, "exp3");
    const double k = static_cast<double>(models);
    constexpr int kRuns = 20;
    const uint64_t calls = 50 * models;
    std::vector<double> regret(calls);  // the mean over the runs, after each call
    for (int run = 0; run < kRuns; ++run) {
      Random random(seed + run);
      SelectionState state = policy->init();
      std::vector<double> lost(models);
      double own = 0;
      for (uint64_t call = 0; call < calls; ++call) {
        std::vector<std::optional<double>> losses(models);
        for (size_t model = 0; model < models; ++model) {
          losses[model] = (call / (4 * models) + model) % models < models / 2 ? 1 : 0;
          lost[model] += *losses[model];
        }
        const Selection selected = policy->select(state, SelectionPolicy::Available(models, true), random);
        own += *losses[selected.models.front()];
        ASSERT_TRUE(policy->observe(state, selected, losses).ok());
        regret[call] += (own - *std::ranges::min_element(lost)) / kRuns;
      }
    }
    for (uint64_t call = 0; call < calls; ++call) {
      const double t = static_cast<double>(call + 1);
      // The bound of the expectation; exploring and sharing; and three standard deviations of the mean.
      const double bound = 2 * std::sqrt(t * k * std::log(k)) + 0.03 * t + 3 * std::sqrt(t / 4 / kRuns);
      ASSERT_LE(regret[call], bound) << models << " models, call " << call << ", seed " << seed;
    }
  }
}

// Of convex losses in each window of the memory's length, by a weighted mean.
TEST(SelectionBoundsTest, Exp4LosesAtMostThreePointsMoreThanTheBestModel) {
  const uint64_t seed = fresh_seed();
  for (const size_t models : {2, 10, 64}) {
    const auto policy = make_for(models, "exp4");
    Random random(seed);
    SelectionState state = policy->init();
    const auto memory = static_cast<uint64_t>(556 * std::log(models));
    std::vector<double> lost(models);
    double own = 0;
    double weight = 0;
    const double discount = 1 - 1 / static_cast<double>(memory);
    for (uint64_t call = 0; call < 10 * memory; ++call) {
      std::vector<std::optional<double>> losses(models);
      for (size_t model = 0; model < models; ++model) {
        losses[model] = (call / 97 + model) % models < models / 2 ? random.uniform() : random.uniform() / 2;
      }
      const Selection selected = policy->select(state, SelectionPolicy::Available(models, true), random);
      own *= discount;
      weight = weight * discount + 1;
      for (size_t model = 0; model < models; ++model) {
        own += selected.weights[model] * *losses[model];
        lost[model] = lost[model] * discount + *losses[model];
      }
      ASSERT_TRUE(policy->observe(state, selected, losses).ok());
      if (call < memory) continue;
      ASSERT_LE((own - *std::ranges::min_element(lost)) / weight, 0.032) << models << " models, seed " << seed;
    }
  }
}

TEST(SelectionBoundsTest, OptionsThatLoseTheGuaranteeAreNamed) {
  EXPECT_THAT(make_for(64, "exp3", "floor = 0.02")->caution(), HasSubstr("floor = 0.02"));
  EXPECT_EQ(make_for(5, "exp3", "floor = 0.02")->caution(), "");
  EXPECT_THAT(make_for(11, "exp4", "eta = 0.005\ndiscount = 0.999")->caution(),
              HasSubstr("10 models that make the same mistakes"));
  EXPECT_EQ(make_for(11, "exp4", "eta = 0.05\ndiscount = 1")->caution(), "");
  for (const char* policy : {"ucb1", "thompson", "epsilon_greedy"}) {
    EXPECT_THAT(make_for(64, policy, "discount = 0.999")->caution(), HasSubstr("64 models"));
    EXPECT_EQ(make_for(5, policy, "discount = 0.999")->caution(), "");
  }
}

}  // namespace
}  // namespace foliot
