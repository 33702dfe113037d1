#include "answer/selection/policy_replay.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "answer/selection/application.h"
#include "foundation/config/toml_file.h"

namespace foliot {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::vector<std::string> kReplayModels{"a", "b", "c"};
// How often each is wrong.
constexpr double kLossesOfModels[] = {0.5, 0.3, 0.7};
constexpr std::string_view kShares = "{ name = 'split', weights = { a = 1, b = 1, c = 2 } }";
constexpr double kLossOfShares = (0.5 + 0.3 + 2 * 0.7) / 4;

NamedPolicy policy_of(std::string_view text) {
  const std::string line =
      text.starts_with('{') ? fmt::format("policy = {}", text) : fmt::format("policy = '{}'", text);
  const auto table = parse_toml(line, "test");
  auto policy = read_policy(*table, "test", kReplayModels);
  EXPECT_TRUE(policy.ok()) << policy.status().message();
  return *std::move(policy);
}

TimePoint at(int64_t microseconds) { return TimePoint() + Duration::microseconds(microseconds); }

FeedbackRecord record_of(uint64_t call, const Selection& selected, const std::vector<std::optional<double>>& losses) {
  const auto when = static_cast<int64_t>(10 * call);
  FeedbackRecord record{.id = fmt::format("id{}", call),
                        .application = "app",
                        .policy = "logged",
                        .context = "",
                        .answered = at(when),
                        .observed = at(when + 5),
                        .models = {}};
  for (uint32_t model = 0; model < kReplayModels.size(); ++model) {
    const bool asked = std::ranges::count(selected.models, model) > 0;
    record.models.push_back({.name = kReplayModels[model],
                             .probability = selected.weights[model],
                             .asked = asked,
                             .loss = asked ? losses[model] : std::nullopt});
  }
  return record;
}

// What a server would log whose application has this policy.
std::vector<FeedbackRecord> log_of(std::string_view text, uint32_t calls, uint64_t seed) {
  const NamedPolicy named = policy_of(text);
  Random random(seed);
  SelectionState state = named.policy->init();
  std::vector<FeedbackRecord> log;
  for (uint32_t call = 0; call < calls; ++call) {
    const Selection selected = named.policy->select(state, {true, true, true}, random);
    std::vector<std::optional<double>> losses;
    for (const double loss : kLossesOfModels) losses.emplace_back(random.uniform() < loss ? 1 : 0);
    log.push_back(record_of(call, selected, losses));
    EXPECT_TRUE(named.policy->observe(state, selected, losses).ok());
  }
  return log;
}

// The mean loss of a policy's choices, by the true losses, if it learns what the log says.
double true_loss(std::string_view text, const std::vector<FeedbackRecord>& log) {
  const NamedPolicy named = policy_of(text);
  Random random(1);
  SelectionState state = named.policy->init();
  double sum = 0;
  for (const FeedbackRecord& record : log) {
    const Selection judged = named.policy->select(state, {true, true, true}, random);
    sum += std::inner_product(judged.weights.begin(), judged.weights.end(), kLossesOfModels, 0.0);
    Selection logged{{}, {}, {true, true, true}};
    std::vector<std::optional<double>> losses;
    for (uint32_t model = 0; model < kReplayModels.size(); ++model) {
      if (record.models[model].asked) logged.models.push_back(model);
      logged.weights.push_back(*record.models[model].probability);
      losses.push_back(record.models[model].loss);
    }
    EXPECT_TRUE(named.policy->observe(state, logged, losses).ok());
  }
  return sum / static_cast<double>(log.size());
}

struct Coverage {
  uint32_t within = 0;  // runs whose interval holds the true loss
  double error = 0;     // mean, with its sign
};

Coverage coverage(std::string_view logging, std::string_view judged, uint32_t runs) {
  Coverage result;
  for (uint64_t seed = 1; seed <= runs; ++seed) {
    const std::vector<FeedbackRecord> log = log_of(logging, 500, seed);
    const auto estimate = replay_policy(std::string(judged), log);
    EXPECT_TRUE(estimate.ok()) << estimate.status().message();
    const double error = estimate->loss.mean - true_loss(judged, log);
    result.within += std::abs(error) <= estimate->loss.half_width ? 1 : 0;
    result.error += error / runs;
  }
  return result;
}

class PolicyReplayCoverage : public testing::TestWithParam<std::pair<std::string_view, std::string_view>> {};

// 380 of 400 are expected within, were the weighted losses normal; large weights make it fewer.
TEST_P(PolicyReplayCoverage, TheTrueLossIsWithinTheInterval) {
  const auto [logging, judged] = GetParam();
  const Coverage found = coverage(logging, judged, 400);
  EXPECT_GE(found.within, 344u);
  EXPECT_LT(std::abs(found.error), 0.02);
}

INSTANTIATE_TEST_SUITE_P(Policies, PolicyReplayCoverage,
                         testing::Values(std::pair<std::string_view, std::string_view>{"exp3", kShares},
                                         std::pair<std::string_view, std::string_view>{
                                             "{ name = 'epsilon_greedy', epsilon = 0.3 }", kShares},
                                         std::pair<std::string_view, std::string_view>{"split", "exp3"},
                                         std::pair<std::string_view, std::string_view>{"split", "ucb1"},
                                         std::pair<std::string_view, std::string_view>{"split", "thompson"},
                                         std::pair<std::string_view, std::string_view>{"{ name = 'exp3', floor = 0.1 }",
                                                                                       "epsilon_greedy"}));

TEST(PolicyReplayTest, ThePolicyOfTheLogHasTheLogsLoss) {
  const auto log = log_of(kShares, 500, 7);
  const auto estimate = replay_policy(std::string(kShares), log);
  ASSERT_TRUE(estimate.ok()) << estimate.status().message();
  EXPECT_EQ(estimate->calls, 500u);
  EXPECT_NEAR(estimate->loss.mean, estimate->logged.mean, 1e-9);
  EXPECT_NEAR(estimate->gain.mean, 0, 1e-9);
  EXPECT_NEAR(estimate->effective_calls, 500, 1e-6);
  EXPECT_NEAR(estimate->logged.mean, kLossOfShares, estimate->logged.half_width);
}

TEST(PolicyReplayTest, ABetterPolicyGains) {
  const auto estimate = replay_policy("{ name = 'static', model = 'b' }", log_of("split", 1000, 3));
  ASSERT_TRUE(estimate.ok()) << estimate.status().message();
  EXPECT_GT(estimate->gain.mean, estimate->gain.half_width);
  EXPECT_NEAR(estimate->gain.mean, 0.2, estimate->gain.half_width);
  EXPECT_NEAR(estimate->weight.mean, 1, estimate->weight.half_width);
}

TEST(PolicyReplayTest, ModelsThatWereNeverAskedCannotBeJudged) {
  for (const std::string logging : {"ucb1", "static", "thompson"}) {
    const auto estimate = replay_policy("split", log_of(logging, 50, 1));
    ASSERT_FALSE(estimate.ok()) << logging;
    EXPECT_EQ(estimate.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(estimate.status().message(), AllOf(HasSubstr("in 50 of 50 calls"), HasSubstr("probability 0"),
                                                   HasSubstr("feedback_id id0"), HasSubstr("exp3 with a floor")));
  }
  // One that may ask only what was asked can be.
  EXPECT_TRUE(replay_policy("static", log_of("static", 50, 1)).ok());
}

TEST(PolicyReplayTest, WhereAllWereAskedEachLossIsKnown) {
  const auto log = log_of("majority", 500, 2);
  double loss_of_b = 0;
  for (const FeedbackRecord& record : log) loss_of_b += *record.models[1].loss / 500;
  const auto estimate = replay_policy("{ name = 'static', model = 'b' }", log);
  ASSERT_TRUE(estimate.ok()) << estimate.status().message();
  EXPECT_NEAR(estimate->loss.mean, loss_of_b, 1e-9);
  EXPECT_NEAR(estimate->effective_calls, 500, 1e-6);
}

TEST(PolicyReplayTest, ModelsThatWereNotAvailableAreNotChosen) {
  std::vector<FeedbackRecord> log = log_of("split", 100, 5);
  for (FeedbackRecord& record : log) {
    record.models[2] = {.name = "c"};
    record.models[0].asked = true;
    record.models[0].probability = 1;
    record.models[0].loss = 0.25;
    record.models[1] = {.name = "b", .probability = 0};
  }
  const auto estimate = replay_policy("{ name = 'static', model = 'c' }", log);
  ASSERT_TRUE(estimate.ok()) << estimate.status().message();
  EXPECT_NEAR(estimate->loss.mean, 0.25, 1e-9) << "the first that is";
}

TEST(PolicyReplayTest, LearnsFromFeedbackWhenItCame) {
  const Selection first{{0}, {0.5, 0.5, 0}, {}};
  std::vector<FeedbackRecord> log;
  for (uint64_t call = 0; call < 2; ++call) log.push_back(record_of(call, first, {1, {}, {}}));
  for (FeedbackRecord& record : log) record.models[2].probability.reset();
  const std::string greedy = "{ name = 'epsilon_greedy', epsilon = 0 }";
  // It knows after the first that 'a' loses, and asks 'b'.
  EXPECT_NEAR(replay_policy(greedy, log)->loss.mean, (2 + 0) / 2.0, 1e-9);
  log[0].observed = at(1000);
  EXPECT_NEAR(replay_policy(greedy, log)->loss.mean, (2 + 2) / 2.0, 1e-9);
  // Contexts learn apart.
  log[0].observed = log[0].answered;
  log[0].context = "x";
  log[1].context = "y";
  EXPECT_NEAR(replay_policy(greedy, log)->loss.mean, (2 + 0) / 2.0, 1e-9) << "y begins as the application";
}

TEST(PolicyReplayTest, CallsWithoutALossAreLeftOut) {
  std::vector<FeedbackRecord> log = log_of("split", 10, 5);
  for (FeedbackRecord::Model& model : log[3].models) model.loss.reset();
  const auto estimate = replay_policy("split", log);
  ASSERT_TRUE(estimate.ok());
  EXPECT_EQ(estimate->calls, 9u);
  EXPECT_EQ(estimate->left_out, 1u);
  for (FeedbackRecord& record : log) {
    for (FeedbackRecord::Model& model : record.models) model.loss.reset();
  }
  EXPECT_THAT(replay_policy("split", log).status().message(), HasSubstr("none of 10 calls"));
}

TEST(PolicyReplayTest, SaysWhatIsWrongWithAPolicy) {
  const auto log = log_of("split", 10, 5);
  const auto message = [&](const std::string& policy) { return replay_policy(policy, log).status().message(); };
  EXPECT_THAT(message("exp5"), HasSubstr("unknown policy 'exp5'"));
  EXPECT_THAT(message("{ name = 'exp3', etta = 1 }"), HasSubstr("unknown key 'etta'"));
  EXPECT_THAT(message("{ name = 'exp3', eta = -1 }"), HasSubstr("'eta' must be above 0"));
  EXPECT_THAT(message("{ name = "), HasSubstr("the policy:1"));
  EXPECT_THAT(message("exp4"), HasSubstr("combines the answers of several models"));
  EXPECT_THAT(replay_policy("exp3", {}).status().message(), HasSubstr("no feedback"));
}

}  // namespace
}  // namespace foliot
