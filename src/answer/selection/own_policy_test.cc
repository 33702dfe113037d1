#include "answer/selection/own_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "answer/selection/application.h"
#include "answer/selection/served_application.h"

namespace foliot {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class OwnPolicyTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / "own_policy" / "app";
    std::filesystem::create_directories(folder_);
    write("policy.py", "class Policy: pass\n");
  }
  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  Application read(const std::string& policy) const {
    write("application.toml", "models = ['a', 'b', 'c']\n" + policy);
    return read_application("app", folder_ / "application.toml");
  }
  // Served, with all models.
  std::unique_ptr<ServedApplication> serve(const std::string& policy) const {
    Application application = read(policy);
    EXPECT_TRUE(application.status.ok()) << application.status.message();
    auto served = std::make_unique<ServedApplication>(std::move(application), 1);
    ApplicationInterface interface;
    interface.state = ModelState::kReady;
    interface.available = {true, true, true};
    served->update(interface);
    return served;
  }
  static uint32_t selected(ServedApplication& served, std::string_view context = "") {
    return served.select(context)->selection.models.front();
  }
  // The process answers that this model is asked.
  static void answer(ServedApplication& served, const ServedApplication::OwnWork& work, uint32_t model,
                     std::vector<double> state = {}) {
    OwnPolicy::Part part{.weights = std::vector<double>(3), .state = std::move(state)};
    part.weights[model] = 1;
    served.take_own_part(work, part);
  }
  // The model did not answer, and another one did: feedback without a client.
  static void miss(ServedApplication& served, const std::string& context = "") {
    const auto chosen = served.select(context);
    served.conclude(*chosen, context, {.missed = {chosen->selection}, .answered = 2});
  }

  std::filesystem::path folder_;
};

constexpr const char* kFallsBackToB = "policy = { name = 'policy.py', fallback = { name = 'static', model = 'b' } }";

TEST_F(OwnPolicyTest, IsReadWithItsFallback) {
  const Application plain = read("policy = 'policy.py'");
  ASSERT_TRUE(plain.status.ok()) << plain.status.message();
  EXPECT_EQ(plain.own->options().fallback, "exp3");
  EXPECT_FALSE(plain.asks_several);
  const Application several = read("policy = { name = 'policy.py', combines = true }");
  EXPECT_EQ(several.own->options().fallback, "exp4");
  EXPECT_TRUE(several.asks_several);
}

TEST_F(OwnPolicyTest, WhatCannotBeServedSaysWhy) {
  EXPECT_THAT(read("policy = 'gone.py'").status.message(), HasSubstr("the policy 'gone.py' cannot be read"));
  // To open it would wait for a writer.
  std::filesystem::remove(folder_ / "pipe.py");
  ASSERT_EQ(::mkfifo((folder_ / "pipe.py").c_str(), 0600), 0);
  EXPECT_THAT(read("policy = 'pipe.py'").status.message(), HasSubstr("the policy 'pipe.py' cannot be read"));
  EXPECT_THAT(read("policy = { name = 'policy.py', fallback = 'exp4' }").status.message(),
              HasSubstr("must be compiled in and ask one model for a call"));
  EXPECT_THAT(read("policy = { name = 'policy.py', fallback = 'policy.py' }").status.message(),
              HasSubstr("must be compiled in"));
  EXPECT_THAT(read("policy = { name = 'policy.py', speed = 3 }").status.message(), HasSubstr("speed"));
  EXPECT_THAT(read("policy = { name = 'policy.py', fallback = 'none' }").status.message(), HasSubstr("'none'"));
}

TEST_F(OwnPolicyTest, AnotherFileLearnsAnew) {
  const std::string before = read("policy = 'policy.py'").learns_as();
  write("policy.py", "class Policy: ...\n");
  const Application after = read("policy = 'policy.py'");
  EXPECT_NE(after.learns_as(), before);
  EXPECT_NE(after.learns_as(), read("policy = { name = 'policy.py', fallback = 'ucb1' }").learns_as());
}

TEST_F(OwnPolicyTest, TheFallbackSelectsUntilTheProcessAnswersAndAfterItFails) {
  const auto served = serve(kFallsBackToB);
  EXPECT_EQ(selected(*served), 1u);
  const auto first = served->first_own_work();
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->begins);
  answer(*served, *first, 0);
  EXPECT_EQ(selected(*served), 0u);
  EXPECT_TRUE(served->statistics().own_in_force);
  served->fail_own(3);
  EXPECT_EQ(selected(*served), 1u);
  EXPECT_EQ(served->statistics().own_failures, 1u);
  EXPECT_EQ(served->statistics().own_unlearned, 3u);
  // What it learned is not lost.
  const auto again = served->first_own_work();
  EXPECT_FALSE(again->begins);
  answer(*served, *again, 0);
  EXPECT_EQ(selected(*served), 0u);
}

TEST_F(OwnPolicyTest, FeedbackIsPassedOnByContextWithItsState) {
  const auto served = serve(kFallsBackToB);
  EXPECT_FALSE(served->take_own_work(64)) << "before the process has made a state";
  answer(*served, *served->first_own_work(), 0, {7});
  miss(*served);
  miss(*served);
  const auto work = served->take_own_work(64);
  ASSERT_TRUE(work);
  EXPECT_EQ(work->context, "");
  EXPECT_THAT(work->state, ElementsAre(7));
  ASSERT_EQ(work->feedback.size(), 2u);
  EXPECT_THAT(work->feedback[0]->losses, ElementsAre(1.0, std::nullopt, std::nullopt));
  answer(*served, *work, 2, {8, 9});
  EXPECT_EQ(selected(*served), 2u);
  EXPECT_FALSE(served->take_own_work(64));
  miss(*served);
  EXPECT_THAT(served->take_own_work(1)->state, ElementsAre(8, 9));
}

TEST_F(OwnPolicyTest, ModelsThatAreNotAvailableAreNotAsked) {
  const auto served = serve(kFallsBackToB);
  answer(*served, *served->first_own_work(), 0);
  ApplicationInterface interface;
  interface.state = ModelState::kReady;
  interface.available = {false, true, true};
  served->update(interface);
  EXPECT_EQ(selected(*served), 1u) << "the fallback, since all weight is on a model that is not there";
}

TEST_F(OwnPolicyTest, AnAnswerOfBeforeAnotherFileIsIgnored) {
  const auto served = serve(kFallsBackToB);
  const auto old = served->first_own_work();
  write("policy.py", "class Policy: ...\n");
  ApplicationInterface interface;
  interface.state = ModelState::kReady;
  interface.available = {true, true, true};
  served->redefine(read(kFallsBackToB), interface);
  answer(*served, *old, 0);
  EXPECT_EQ(selected(*served), 1u);
  EXPECT_TRUE(served->first_own_work()->begins);
}

TEST_F(OwnPolicyTest, WhatItLearnedIsKept) {
  const auto served = serve(kFallsBackToB);
  served->restore({});
  answer(*served, *served->first_own_work(), 0, {7});
  const std::vector<ServedApplication::Learned> changes = served->take_changes();
  ASSERT_EQ(changes.size(), 1u);
  const auto again = serve(kFallsBackToB);
  again->restore(changes);
  const auto first = again->first_own_work();
  EXPECT_FALSE(first->begins);
  EXPECT_THAT(first->state, ElementsAre(7));
}

TEST_F(OwnPolicyTest, OneThatCombinesAsksAllThatHaveWeight) {
  const auto served = serve("policy = { name = 'policy.py', combines = true }");
  EXPECT_THAT(served->select("")->selection.models, ElementsAre(0, 1, 2)) << "exp4";
  served->take_own_part(*served->first_own_work(), {.weights = {0.75, 0, 0.25}, .state = {}});
  const auto chosen = served->select("");
  EXPECT_THAT(chosen->selection.models, ElementsAre(0, 2));
  EXPECT_THAT(chosen->selection.weights, ElementsAre(0.75, 0, 0.25));
}

TEST_F(OwnPolicyTest, FeedbackWaitsWithinABound) {
  OwnFeedback feedback;
  const auto one = std::make_shared<const LearnedFeedback>();
  for (size_t i = 0; i < OwnFeedback::kObservationsMax; ++i) ASSERT_TRUE(feedback.add(i % 2 == 0 ? "" : "b", one));
  EXPECT_FALSE(feedback.add("c", one));
  EXPECT_EQ(feedback.take(3)->first, "b");
  EXPECT_EQ(feedback.take(3)->first, "") << "each context in turn";
  EXPECT_TRUE(feedback.add("c", one));
  feedback.forget("b");
  feedback.forget("c");
  EXPECT_EQ(feedback.take(OwnFeedback::kObservationsMax)->second.size(), OwnFeedback::kObservationsMax / 2 - 3);
  EXPECT_FALSE(feedback.take(1));
}

}  // namespace
}  // namespace foliot
