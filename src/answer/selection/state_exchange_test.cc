// Front ends that learn one application together, in every order of rounds and feedback that a
// seed gives, over a store that fails before and after it writes.
#include "answer/selection/state_exchange.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "answer/selection/fake_shared_states.h"
#include "answer/selection/mean_losses.h"
#include "foundation/base/random.h"

namespace foliot {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kSettings = R"(
models = ["a", "b"]
contexts_max = 3
[policy]
name = "epsilon_greedy"
epsilon = 0.5
discount = 1
)";

Application application_of(std::string_view settings) {
  const auto folder = std::filesystem::path(testing::TempDir()) / fmt::format("foliot_exchange_{}", ::getpid());
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "application.toml") << settings;
  Application application = read_application("app", folder / "application.toml");
  EXPECT_TRUE(application.status.ok()) << application.status.message();
  std::filesystem::remove_all(folder);
  return application;
}

ApplicationInterface interface_of_two() { return {ModelState::kReady, "", {true, true}, nullptr}; }

// One of several front ends that serve the application.
class SharingFrontend {
 public:
  SharingFrontend(SharedStates& states, uint64_t number)
      : served_(std::make_shared<ServedApplication>(application_of(kSettings), number)),
        exchange_([this] { return StateExchange::Applications{served_}; }, states, fmt::format("frontend {}", number)) {
    served_->share();
    served_->update(interface_of_two());
  }

  // A call in this context, and feedback for its answer.
  void learn(const std::string& context, double loss) {
    const auto selected = served_->select(context);
    ASSERT_TRUE(selected);
    Prediction prediction;
    prediction.outputs.push_back({{"y", DataType::kFloat32, {1}, {}}, {1, 1}, false, std::string(4, '\0')});
    const Prediction* const answer = &prediction;
    const std::string id =
        served_->combine(*selected, {&answer, 1}, {}, true, TenantId(), context, TimePoint()).feedback_id;
    Observation observation;
    observation.feedback_id = id;
    observation.losses = {{.model = {}, .loss = loss}};
    const Status status = served_->observe(observation, TimePoint());
    ASSERT_TRUE(status.ok()) << status.message();
  }
  Status exchange() { return exchange_.exchange(); }
  ServedApplication& served() { return *served_; }
  bool has_unshared() const { return !served_->unshared(served_->shared_name(), 1).empty(); }

 private:
  const std::shared_ptr<ServedApplication> served_;
  StateExchange exchange_;
};

// How many observations, and the sum of their losses.
std::pair<double, double> totals(const std::string& bytes) {
  const SelectionState state = *application_of(kSettings).policy->parse(bytes);
  return {state.values[0] + state.values[1], state.values[2] + state.values[3]};
}

TEST(StateExchange, WhatOneLearnsTheOthersKnow) {
  FakeSharedStates states;
  SharingFrontend one(states, 1), two(states, 2);
  one.learn("", 1);
  one.learn("rome", 1);
  ASSERT_TRUE(one.exchange().ok());
  ASSERT_TRUE(two.exchange().ok());
  EXPECT_EQ(two.served().statistics().contexts, 1u);
  two.learn("rome", 0);
  ASSERT_TRUE(two.exchange().ok());
  const auto kept = states.states(one.served().shared_name());
  EXPECT_EQ(totals(kept.at("").bytes), (std::pair(3.0, 2.0)));
  EXPECT_EQ(totals(kept.at("rome").bytes), (std::pair(3.0, 2.0)));  // it begins as the application's
}

TEST(StateExchange, EachObservationIsLearnedOnce) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    FakeSharedStates states;
    const double failing = random.uniform() / 2;
    states.fail([&] {
      if (random.uniform() >= failing) return FakeSharedStates::Failure::kNone;
      return random.below(2) == 0 ? FakeSharedStates::Failure::kBefore : FakeSharedStates::Failure::kAfter;
    });
    std::vector<std::unique_ptr<SharingFrontend>> frontends;
    for (uint64_t number = 0; number < 3; ++number) {
      frontends.push_back(std::make_unique<SharingFrontend>(states, number));
    }
    double observations = 0, losses = 0;
    for (int step = 0; step < 200; ++step) {
      SharingFrontend& frontend = *frontends[random.below(3)];
      if (random.below(3) == 0) {
        (void)frontend.exchange();
        continue;
      }
      const auto loss = static_cast<double>(random.below(2));
      const uint64_t context = random.below(5);  // more than are kept
      frontend.learn(context == 0 ? "" : fmt::format("c{}", context), loss);
      ++observations;
      losses += loss;
    }
    states.fail([] { return FakeSharedStates::Failure::kNone; });
    for (const auto& frontend : frontends) {
      while (frontend->has_unshared()) ASSERT_TRUE(frontend->exchange().ok());
    }
    const auto kept = states.states(frontends[0]->served().shared_name());
    EXPECT_EQ(totals(kept.at("").bytes), std::pair(observations, losses));
    EXPECT_LE(kept.size(), 4u);
    for (const auto& frontend : frontends) {
      ASSERT_TRUE(frontend->exchange().ok());
      EXPECT_FALSE(frontend->has_unshared());
      const ApplicationStatistics now = frontend->served().statistics();
      EXPECT_EQ(now.models[0].weight, frontends[0]->served().statistics().models[0].weight);
    }
  }
}

TEST(StateExchange, AStoreThatLostAllLearnsAgain) {
  FakeSharedStates states;
  SharingFrontend one(states, 1), two(states, 2);
  for (int i = 0; i < 5; ++i) one.learn("", 1);
  ASSERT_TRUE(one.exchange().ok());
  ASSERT_TRUE(two.exchange().ok());
  states.lose_all();
  two.learn("", 0);
  ASSERT_TRUE(two.exchange().ok());
  const std::string name = one.served().shared_name();
  EXPECT_EQ(totals(states.states(name).at("").bytes), (std::pair(6.0, 5.0)));
  one.learn("", 1);
  ASSERT_TRUE(one.exchange().ok());
  ASSERT_TRUE(two.exchange().ok());
  EXPECT_EQ(totals(states.states(name).at("").bytes), (std::pair(7.0, 6.0)));
}

TEST(StateExchange, AStateOfAnotherFormIsNamedAndReplaced) {
  FakeSharedStates states;
  SharingFrontend one(states, 1);
  const std::string name = one.served().shared_name();
  states.put(name, "", "xyz");
  one.learn("", 1);
  const Status status = one.exchange();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("application 'app'"));
  EXPECT_EQ(totals(states.states(name).at("").bytes), (std::pair(1.0, 1.0)));
  EXPECT_TRUE(one.exchange().ok());
}

TEST(StateExchange, AnotherDefinitionLearnsApart) {
  FakeSharedStates states;
  SharingFrontend one(states, 1);
  one.learn("", 1);
  ASSERT_TRUE(one.exchange().ok());
  const std::string before = one.served().shared_name();
  one.served().redefine(application_of("models = ['a', 'b']\npolicy = 'ucb1'"), interface_of_two());
  ASSERT_NE(one.served().shared_name(), before);
  one.learn("", 0);
  ASSERT_TRUE(one.exchange().ok());
  EXPECT_EQ(totals(states.states(before).at("").bytes), (std::pair(1.0, 1.0)));
  EXPECT_EQ(states.states(one.served().shared_name()).size(), 1u);
}

TEST(StateExchange, WhatHasNoRoomIsCounted) {
  FakeSharedStates states;
  SharingFrontend one(states, 1);
  for (size_t i = 0; i < UnsharedFeedback::kObservationsMax; ++i) one.learn("", 1);
  EXPECT_EQ(one.served().statistics().unshared, 0u);
  one.learn("", 1);
  EXPECT_EQ(one.served().statistics().unshared, 1u);
}

}  // namespace
}  // namespace foliot
