#include "cluster/sessions/model_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "cluster/sessions/test_peer.h"
#include "foundation/base/random.h"

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;
using WorkerId = ModelRegistry::WorkerId;

constexpr WorkerId kOne{1};
constexpr WorkerId kTwo{2};
constexpr WorkerId kThree{3};

ModelInfo model(uint32_t own, std::string name, std::string version = "1") {
  return {.id = ModelId(own), .name = std::move(name), .version = std::move(version), .buckets = {Bucket()}};
}

ModelInfo gpu_model(uint32_t own, std::string name, std::string version = "1") {
  ModelInfo result = model(own, std::move(name), std::move(version));
  result.only() = {.kind = "gpu", .batch_sizes = {1, 8}, .pages = 3};
  return result;
}

class ModelRegistryTest : public ::testing::Test {
 protected:
  std::vector<ModelId> join(WorkerId worker, const std::vector<ModelInfo>& models, const std::string& kind = "cpu") {
    const Status status = registry_.check(kind, models);
    EXPECT_TRUE(status.ok()) << status.message();
    ModelRegistry::Joined joined = registry_.join(worker, kind, models, now_);
    EXPECT_THAT(joined.decisions.namings, IsEmpty());
    take(joined.decisions);
    return joined.names;
  }
  void offer(WorkerId worker, const ModelInfo& model) {
    const Status status = registry_.offer(worker, model);
    EXPECT_TRUE(status.ok()) << status.message();
    decide();
  }
  void withdraw(WorkerId worker, uint32_t own) {
    const Status status = registry_.withdraw(worker, ModelId(own));
    EXPECT_TRUE(status.ok()) << status.message();
    decide();
  }
  void leave(WorkerId worker) {
    registry_.leave(worker);
    decide();
  }
  void lose(WorkerId worker) {
    registry_.lose(worker);
    decide();
  }
  void decide() { take(registry_.decide(now_)); }
  void pass(Duration time) {
    now_ += time;
    decide();
  }
  // What the controller has removed is gone.
  void end_removals() {
    for (const ModelId id : registry_.removing()) {
      for (const auto& release : registry_.gone(id, now_).releases) releases_.push_back(release);
    }
  }
  // "x 1, y 2", by name.
  std::string served() const {
    std::vector<std::string> found;
    for (const auto& [id, model] : added_) {
      if (registry_.serves(id)) found.push_back(model->name + " " + model->version);
    }
    std::ranges::sort(found);
    std::string text;
    for (const std::string& one : found) text += (text.empty() ? "" : ", ") + one;
    return text;
  }
  // What was sent to a worker since the last call: the names of its models.
  std::map<uint32_t, ModelId> named(WorkerId worker) {
    std::map<uint32_t, ModelId> found;
    for (const auto& [to, naming] : namings_) {
      if (to == worker) found.emplace(naming.model.value(), naming.name);
    }
    std::erase_if(namings_, [&](const auto& naming) { return naming.first == worker; });
    return found;
  }
  std::vector<uint32_t> released(WorkerId worker) {
    std::vector<uint32_t> found;
    for (const auto& [to, release] : releases_) {
      if (to == worker) found.push_back(release.model.value());
    }
    std::erase_if(releases_, [&](const auto& release) { return release.first == worker; });
    return found;
  }

  ModelRegistry registry_;
  TimePoint now_ = at_ms(1);
  std::map<ModelId, std::shared_ptr<const ModelInfo>> added_;
  std::vector<std::string> replaced_;
  std::vector<ModelId> removed_;
  uint32_t news_ = 0;

 private:
  void take(const ModelRegistry::Decisions& decisions) {
    namings_.insert(namings_.end(), decisions.namings.begin(), decisions.namings.end());
    releases_.insert(releases_.end(), decisions.releases.begin(), decisions.releases.end());
    removed_.insert(removed_.end(), decisions.removed.begin(), decisions.removed.end());
    for (const ModelRegistry::Addition& addition : decisions.added) {
      added_[addition.model->id] = addition.model;
      replaced_.push_back(addition.replaced);
    }
    for (const auto& extended : decisions.extended) added_[extended->id] = extended;
    news_ += decisions.news ? 1 : 0;
  }

  std::vector<std::pair<WorkerId, Naming>> namings_;
  ModelRegistry::Releases releases_;
};

// ---- Kinds of device ----

TEST_F(ModelRegistryTest, AWorkerOfAnotherKindNeedNotBringWhatIsServed) {
  join(kOne, {model(0, "x"), model(1, "y")});
  EXPECT_THAT(join(kTwo, {gpu_model(7, "z")}, "gpu"), ElementsAre(kUnnamed));
  decide();
  EXPECT_EQ(served(), "x 1, y 1, z 1");
  EXPECT_EQ(added_[ModelId(2)]->kinds(), "gpu");
  EXPECT_THAT(named(kTwo), ElementsAre(std::pair(7u, ModelId(2))));
}

TEST_F(ModelRegistryTest, AKindIsAddedOnceAllItsWorkersOfferTheModel) {
  join(kOne, {model(0, "x")});
  join(kTwo, {gpu_model(7, "z")}, "gpu");
  join(kThree, {gpu_model(8, "z")}, "gpu");
  decide();
  EXPECT_EQ(served(), "x 1, z 1");
  offer(kTwo, gpu_model(9, "x"));
  EXPECT_EQ(added_[ModelId(0)]->kinds(), "cpu");
  named(kTwo);
  offer(kThree, gpu_model(4, "x"));
  EXPECT_EQ(added_[ModelId(0)]->kinds(), "cpu, gpu");
  EXPECT_EQ(added_[ModelId(0)]->find("gpu")->pages, 3u);
  EXPECT_THAT(named(kTwo), ElementsAre(std::pair(9u, ModelId(0))));
  EXPECT_EQ(registry_.check("gpu", {gpu_model(1, "z")}).message(),
            "all workers of kind gpu must bring the same models: 'x' is missing");
  EXPECT_TRUE(registry_.check("cpu", {model(1, "x")}).ok());
}

TEST_F(ModelRegistryTest, AVersionWaitsForAllKindsThatHaveTheOther) {
  join(kOne, {model(0, "x")});
  join(kTwo, {gpu_model(0, "x")}, "gpu");
  decide();
  EXPECT_EQ(added_[ModelId(0)]->kinds(), "cpu, gpu");
  offer(kOne, model(1, "x", "2"));
  EXPECT_EQ(served(), "x 1");
  offer(kTwo, gpu_model(1, "x", "2"));
  EXPECT_EQ(served(), "x 2");
  EXPECT_EQ(added_[ModelId(1)]->kinds(), "cpu, gpu");
  EXPECT_THAT(named(kOne), ElementsAre(std::pair(1u, ModelId(1))));
}

TEST_F(ModelRegistryTest, RetiresWhatAllThatHadItHaveWithdrawn) {
  join(kOne, {model(0, "x"), model(1, "y")});
  join(kTwo, {gpu_model(0, "z")}, "gpu");
  decide();
  withdraw(kOne, 1);
  EXPECT_EQ(served(), "x 1, z 1");
  withdraw(kTwo, 0);
  EXPECT_EQ(served(), "x 1");
}

TEST_F(ModelRegistryTest, TheFirstWorkerOfAKindDeterminesWhatRunsOnThatKindAlone) {
  join(kOne, {model(0, "x"), model(1, "both")});
  join(kTwo, {gpu_model(0, "z"), gpu_model(1, "both")}, "gpu");
  decide();
  lose(kTwo);
  EXPECT_EQ(served(), "both 1, x 1, z 1");
  EXPECT_THAT(registry_.check("gpu", {gpu_model(0, "y")}).message(), HasSubstr("'both' is missing"));
  join(kThree, {gpu_model(0, "y"), gpu_model(1, "both")}, "gpu");
  EXPECT_THAT(removed_, SizeIs(1));
  end_removals();
  decide();
  EXPECT_EQ(served(), "both 1, x 1, y 1");
}

TEST_F(ModelRegistryTest, AWorkerOfANewKindKeepsWhatAKindHasLostAllItsWorkersWith) {
  join(kOne, {model(0, "x")});
  join(kTwo, {gpu_model(0, "z")}, "gpu");
  decide();
  lose(kOne);
  ModelInfo other = gpu_model(0, "z");
  other.only().kind = "npu";
  join(kThree, {other}, "npu");
  decide();
  EXPECT_THAT(removed_, IsEmpty());
  EXPECT_EQ(served(), "x 1, z 1");
  lose(kThree);
  EXPECT_THAT(join(kOne, {model(5, "x")}), ElementsAre(ModelId(0))) << "its worker comes back";
}

TEST_F(ModelRegistryTest, RefusesAModelForAnotherKindThanTheWorkers) {
  EXPECT_THAT(registry_.check("cpu", {gpu_model(0, "x")}).message(),
              HasSubstr("model 'x' is for devices of kind gpu; the worker's are of kind cpu"));
  join(kOne, {model(0, "y")});
  EXPECT_THAT(registry_.offer(kOne, gpu_model(1, "x")).message(), HasSubstr("the worker's are of kind cpu"));
}

// ---- Workers that come ----

TEST_F(ModelRegistryTest, TheFirstWorkerDeterminesWhatIsServed) {
  EXPECT_THAT(join(kOne, {model(5, "x", "2"), model(3, "y"), model(4, "x", "1")}),
              ElementsAre(ModelId(0), ModelId(1), kUnnamed));
  EXPECT_EQ(served(), "x 2, y 1");
  EXPECT_EQ(news_, 1u);
  decide();
  EXPECT_EQ(served(), "x 2, y 1") << "what it lists first it prefers";
}

TEST_F(ModelRegistryTest, OthersBringWhatIsServedInTheirOrderAndMore) {
  join(kOne, {model(0, "x"), model(1, "y")});
  EXPECT_THAT(join(kTwo, {model(7, "y"), model(8, "z"), model(9, "x")}), ElementsAre(ModelId(1), kUnnamed, ModelId(0)));
  EXPECT_THAT(registry_.check("cpu", {model(0, "x")}).message(), HasSubstr("'y' is missing"));
  EXPECT_THAT(registry_.check("cpu", {model(0, "x"), model(1, "y", "2")}).message(),
              HasSubstr("'y' is not what is served, version 1"));
  EXPECT_THAT(registry_.check("cpu", {model(0, "x"), model(1, "y"), model(2, "x")}).message(),
              HasSubstr("'x' is listed twice"));
  EXPECT_THAT(registry_.check("cpu", {}).message(), HasSubstr("1 to 16384 models"));
  EXPECT_TRUE(registry_.check("cpu", {model(0, "x", "2"), model(1, "y"), model(2, "x")}).ok());
}

TEST_F(ModelRegistryTest, NoWorkerRegistersWhileAModelRetires) {
  join(kOne, {model(0, "x"), model(1, "y")});
  withdraw(kOne, 1);
  EXPECT_EQ(registry_.check("cpu", {model(0, "x")}).code(), StatusCode::kUnavailable);
  pass(ModelRegistry::kNotificationTime);
  EXPECT_EQ(registry_.check("cpu", {model(0, "x")}).code(), StatusCode::kUnavailable) << "pages may hold it";
  end_removals();
  EXPECT_TRUE(registry_.check("cpu", {model(0, "x")}).ok());
}

// Both within one turn of the controller, which knows it no more when it sends.
TEST_F(ModelRegistryTest, AWorkerThatIsLostIsSentNoReleases) {
  join(kOne, {model(0, "x")});
  join(kTwo, {model(0, "x"), model(1, "y")});
  ASSERT_TRUE(registry_.withdraw(kTwo, ModelId(1)).ok());
  registry_.lose(kTwo);
  EXPECT_THAT(registry_.decide(now_).releases, IsEmpty());
}

TEST_F(ModelRegistryTest, AfterAllWereLostTheFirstWorkerDeterminesItAnew) {
  join(kOne, {model(0, "x"), model(1, "y"), model(2, "z")});
  lose(kOne);
  EXPECT_EQ(served(), "x 1, y 1, z 1");
  EXPECT_THAT(join(kTwo, {model(0, "x"), model(1, "y", "2")}), ElementsAre(ModelId(0), ModelId(3)));
  EXPECT_EQ(served(), "x 1, y 2");
  EXPECT_THAT(removed_, UnorderedElementsAre(ModelId(1), ModelId(2))) << "no worker has them";
  end_removals();
  EXPECT_THAT(released(kTwo), IsEmpty());
}

// ---- Offers ----

TEST_F(ModelRegistryTest, WhatAllOfferIsServed) {
  join(kOne, {model(0, "x")});
  join(kTwo, {model(0, "x")});
  offer(kOne, model(1, "y"));
  EXPECT_EQ(served(), "x 1");
  offer(kTwo, model(9, "y"));
  EXPECT_EQ(served(), "x 1, y 1");
  EXPECT_THAT(named(kOne), ElementsAre(std::pair(1u, ModelId(1))));
  EXPECT_THAT(named(kTwo), ElementsAre(std::pair(9u, ModelId(1))));
  EXPECT_THAT(replaced_, ElementsAre("", ""));
}

TEST_F(ModelRegistryTest, AllMustMeanTheSame) {
  join(kOne, {model(0, "x")});
  join(kTwo, {model(0, "x")});
  offer(kOne, model(1, "y", "1"));
  offer(kTwo, model(1, "y", "2"));
  ModelInfo larger = model(2, "y", "1");
  larger.only().pages = 2;
  offer(kTwo, larger);
  EXPECT_EQ(served(), "x 1");
  offer(kOne, model(2, "y", "2"));
  EXPECT_EQ(served(), "x 1, y 2");
}

TEST_F(ModelRegistryTest, ANewVersionTakesThePlaceOfTheOld) {
  join(kOne, {model(0, "x")});
  join(kTwo, {model(0, "x")});
  offer(kOne, model(1, "x", "2"));
  withdraw(kOne, 0);
  EXPECT_EQ(served(), "x 1") << "a worker runs what it has withdrawn";
  offer(kTwo, model(1, "x", "2"));
  EXPECT_EQ(served(), "x 2");
  EXPECT_EQ(replaced_.back(), "1");
  withdraw(kTwo, 0);
  pass(ModelRegistry::kNotificationTime);
  EXPECT_THAT(removed_, ElementsAre(ModelId(0)));
  EXPECT_THAT(released(kOne), IsEmpty());
  end_removals();
  EXPECT_THAT(released(kOne), ElementsAre(0));
  EXPECT_THAT(released(kTwo), ElementsAre(0));
  EXPECT_EQ(served(), "x 2");
}

// Whatever comes first, there is always some version of it.
TEST_F(ModelRegistryTest, InEveryOrderOneVersionIsServedAndInTheEndTheNewOne) {
  std::vector<int> events{0, 1, 2, 3};  // offers of one and two, withdrawals of one and two
  do {
    if (std::ranges::find(events, 0) > std::ranges::find(events, 2)) continue;  // each offers before it withdraws
    if (std::ranges::find(events, 1) > std::ranges::find(events, 3)) continue;
    registry_ = ModelRegistry();
    added_.clear();
    join(kOne, {model(0, "x")});
    join(kTwo, {model(0, "x")});
    for (const int event : events) {
      const WorkerId worker = event % 2 == 0 ? kOne : kTwo;
      event < 2 ? offer(worker, model(1, "x", "2")) : withdraw(worker, 0);
      EXPECT_THAT(served(), ::testing::AnyOf("x 1", "x 2"));
    }
    EXPECT_EQ(served(), "x 2");
  } while (std::ranges::next_permutation(events).found);
}

TEST_F(ModelRegistryTest, OfTwoNewVersionsTheLaterOneIsPreferred) {
  join(kOne, {model(0, "x")});
  ASSERT_TRUE(registry_.offer(kOne, model(1, "x", "2")).ok());
  ASSERT_TRUE(registry_.offer(kOne, model(2, "x", "3")).ok());
  decide();
  EXPECT_EQ(served(), "x 3");
  decide();
  EXPECT_EQ(served(), "x 3");
  withdraw(kOne, 2);
  EXPECT_EQ(served(), "x 2") << "the next best";
}

TEST_F(ModelRegistryTest, AnIdOrAModelIsOfferedOnce) {
  join(kOne, {model(0, "x"), model(1, "y", "2"), model(2, "y", "1")});
  join(kTwo, {model(0, "x"), model(1, "y", "2")});
  EXPECT_THAT(registry_.offer(kOne, model(0, "z")).message(), HasSubstr("two models as 0"));
  EXPECT_THAT(registry_.offer(kOne, model(3, "x")).message(), HasSubstr("'x' twice"));
  EXPECT_THAT(registry_.offer(kOne, model(3, "y", "1")).message(), HasSubstr("'y' twice"));
}

TEST_F(ModelRegistryTest, AWorkerHasSoManyModelsAtMost) {
  join(kOne, {model(0, "x")});
  join(kTwo, {model(0, "x")});
  for (uint32_t i = 1; i < ModelRegistry::kModelsMax; ++i) {
    ASSERT_TRUE(registry_.offer(kOne, model(i, "m" + std::to_string(i))).ok());
  }
  EXPECT_EQ(registry_.offer(kOne, model(99999, "more")).code(), StatusCode::kResourceExhausted);
}

// ---- Withdrawals ----

TEST_F(ModelRegistryTest, WhatHasNoNameIsReleasedAtOnce) {
  join(kOne, {model(0, "x")});
  join(kTwo, {model(0, "x")});
  offer(kOne, model(1, "y"));
  withdraw(kOne, 1);
  EXPECT_THAT(released(kOne), ElementsAre(1));
  offer(kTwo, model(1, "y"));
  EXPECT_EQ(served(), "x 1") << "one has it no more";
  offer(kOne, model(1, "y"));
  EXPECT_EQ(served(), "x 1, y 1") << "its id is free again";
}

TEST_F(ModelRegistryTest, OnlyWhatIsOfferedCanBeWithdrawn) {
  join(kOne, {model(0, "x")});
  join(kTwo, {model(0, "x")});
  EXPECT_THAT(registry_.withdraw(kOne, ModelId(1)).message(), HasSubstr("which it does not offer"));
  withdraw(kOne, 0);
  EXPECT_THAT(registry_.withdraw(kOne, ModelId(0)).message(), HasSubstr("which it does not offer"));
}

TEST_F(ModelRegistryTest, OneNameAndVersionMayHaveAnotherContent) {
  ModelInfo changed = model(1, "x");
  changed.content = "b";
  join(kOne, {model(0, "x")});
  EXPECT_THAT(registry_.check("cpu", {changed}).message(), HasSubstr("'x' is not what is served"));
  offer(kOne, changed);
  EXPECT_TRUE(registry_.serves(ModelId(1)));
  EXPECT_FALSE(registry_.serves(ModelId(0)));
}

TEST_F(ModelRegistryTest, WhatAllHaveWithdrawnRetires) {
  join(kOne, {model(0, "x"), model(1, "y")});
  join(kTwo, {model(0, "x"), model(1, "y")});
  const uint32_t news = news_;
  withdraw(kOne, 1);
  EXPECT_EQ(served(), "x 1, y 1");
  withdraw(kTwo, 1);
  EXPECT_EQ(served(), "x 1");
  EXPECT_EQ(news_, news + 1);
  pass(ModelRegistry::kNotificationTime);
  EXPECT_THAT(removed_, ElementsAre(ModelId(1)));
  end_removals();
  EXPECT_THAT(released(kOne), ElementsAre(1));
  EXPECT_THAT(released(kTwo), ElementsAre(1));
}

// It serves on under its old name; the new one waits for the others'.
TEST_F(ModelRegistryTest, WhatWasWithdrawnMayComeAgain) {
  join(kOne, {model(0, "x")});
  join(kTwo, {model(0, "x")});
  withdraw(kOne, 0);
  offer(kOne, model(1, "x"));
  EXPECT_THAT(named(kOne), IsEmpty());
  EXPECT_EQ(served(), "x 1");
  withdraw(kTwo, 0);
  EXPECT_EQ(served(), "");
  offer(kTwo, model(1, "x"));
  EXPECT_EQ(served(), "x 1");
  EXPECT_THAT(named(kOne), ElementsAre(std::pair(1u, ModelId(1))));
  EXPECT_THAT(named(kTwo), ElementsAre(std::pair(1u, ModelId(1))));
}

// The worker withdraws what is being released to it, or takes its id for another.
TEST_F(ModelRegistryTest, AReleaseMayCrossAWithdrawal) {
  join(kOne, {model(0, "x")});
  offer(kOne, model(1, "x", "2"));
  pass(ModelRegistry::kNotificationTime);
  end_removals();
  EXPECT_THAT(released(kOne), ElementsAre(0));
  withdraw(kOne, 0);
  EXPECT_THAT(released(kOne), IsEmpty()) << "it was notified";
  EXPECT_FALSE(registry_.withdraw(kOne, ModelId(0)).ok());
  offer(kOne, model(2, "x", "3"));
  pass(ModelRegistry::kNotificationTime);
  end_removals();
  offer(kOne, model(1, "x", "1"));
  EXPECT_EQ(served(), "x 1") << "back to an earlier version, under an id that was released";
}

// ---- Retirements ----

TEST_F(ModelRegistryTest, AModelRetiresWhenClientsAreNotifiedAndNothingIsInFlight) {
  join(kOne, {model(0, "x")});
  registry_.on_request(ModelId(0));
  offer(kOne, model(1, "x", "2"));
  const TimePoint notified = now_;
  EXPECT_EQ(registry_.next(), notified + ModelRegistry::kRetirementMax) << "an answer may come first";
  pass(ModelRegistry::kNotificationTime * 5);
  EXPECT_THAT(removed_, IsEmpty());
  registry_.on_answer(ModelId(0));
  EXPECT_EQ(registry_.next(), notified + ModelRegistry::kNotificationTime);
  decide();
  EXPECT_THAT(removed_, ElementsAre(ModelId(0)));
  EXPECT_THAT(registry_.removing(), ElementsAre(ModelId(0)));
  decide();
  EXPECT_THAT(removed_, SizeIs(1)) << "once";
}

TEST_F(ModelRegistryTest, WhatIsNeverAnsweredDoesNotKeepItForEver) {
  join(kOne, {model(0, "x")});
  registry_.on_request(ModelId(0));
  offer(kOne, model(1, "x", "2"));
  pass(ModelRegistry::kRetirementMax - Duration::nanoseconds(1));
  EXPECT_THAT(removed_, IsEmpty());
  pass(Duration::nanoseconds(1));
  EXPECT_THAT(removed_, ElementsAre(ModelId(0)));
  registry_.on_answer(ModelId(0));
  end_removals();
  EXPECT_THAT(released(kOne), ElementsAre(0));
}

TEST_F(ModelRegistryTest, WithoutRequestsItRetiresWhenClientsAreNotified) {
  join(kOne, {model(0, "x")});
  offer(kOne, model(1, "x", "2"));
  EXPECT_EQ(registry_.next(), now_ + ModelRegistry::kNotificationTime);
  pass(ModelRegistry::kNotificationTime - Duration::nanoseconds(1));
  EXPECT_THAT(removed_, IsEmpty());
  pass(Duration::nanoseconds(1));
  EXPECT_THAT(removed_, ElementsAre(ModelId(0)));
  EXPECT_TRUE(registry_.next().is_infinite());
}

TEST_F(ModelRegistryTest, RequestsForWhatIsUnknownDoNotCount) {
  registry_.on_request(ModelId(7));
  registry_.on_answer(ModelId(7));
  join(kOne, {model(0, "x")});
  registry_.on_request(kUnnamed);
  registry_.on_answer(kUnnamed);
  EXPECT_FALSE(registry_.serves(ModelId(7)));
}

TEST_F(ModelRegistryTest, AnIdRestsBeforeItIsUsedAgain) {
  join(kOne, {model(0, "x")});
  offer(kOne, model(1, "x", "2"));
  pass(ModelRegistry::kNotificationTime);
  end_removals();
  pass(ModelRegistry::kIdRest - Duration::nanoseconds(1));
  offer(kOne, model(2, "y"));
  EXPECT_THAT(named(kOne), UnorderedElementsAre(std::pair(1u, ModelId(1)), std::pair(2u, ModelId(2))));
  pass(Duration::nanoseconds(1));
  offer(kOne, model(3, "z"));
  EXPECT_THAT(named(kOne), ElementsAre(std::pair(3u, ModelId(0))));
  EXPECT_EQ(served(), "x 2, y 1, z 1");
}

TEST_F(ModelRegistryTest, CandidatesWaitForIdsToRest) {
  std::vector<ModelInfo> many;
  for (uint32_t i = 0; i < ModelRegistry::kModelsMax; ++i) many.push_back(model(i, "m" + std::to_string(i)));
  join(kOne, many);
  lose(kOne);
  for (ModelInfo& model : many) model.version = "2";
  join(kTwo, many);
  end_removals();
  lose(kTwo);
  for (ModelInfo& model : many) model.version = "3";
  EXPECT_EQ(join(kThree, many).front(), kUnnamed) << "two versions of all have taken all ids";
  end_removals();
  decide();
  EXPECT_EQ(served(), "");
  EXPECT_EQ(registry_.next(), now_ + ModelRegistry::kIdRest);
  pass(ModelRegistry::kIdRest);
  EXPECT_EQ(named(kThree).size(), size_t{ModelRegistry::kModelsMax});
}

// ---- Workers that go ----

TEST_F(ModelRegistryTest, ALostWorkerHoldsNothingUp) {
  join(kOne, {model(0, "x")});
  join(kTwo, {model(0, "x")});
  offer(kTwo, model(1, "x", "2"));
  lose(kOne);
  EXPECT_EQ(served(), "x 2");
  EXPECT_THAT(named(kTwo), ElementsAre(std::pair(1u, ModelId(1))));
}

TEST_F(ModelRegistryTest, ALostWorkerKeepsNothing) {
  join(kOne, {model(0, "x"), model(1, "y")});
  join(kTwo, {model(0, "x"), model(1, "y")});
  withdraw(kTwo, 1);
  lose(kOne);
  EXPECT_EQ(served(), "x 1");
}

TEST_F(ModelRegistryTest, OffersOfALeavingWorkerDoNotCount) {
  join(kOne, {model(0, "x"), model(1, "y")});
  join(kTwo, {model(0, "x"), model(1, "y")});
  offer(kTwo, model(2, "z"));
  withdraw(kTwo, 1);
  leave(kOne);
  EXPECT_EQ(served(), "x 1, z 1");
  pass(ModelRegistry::kNotificationTime);
  end_removals();
  EXPECT_THAT(released(kOne), ElementsAre(1)) << "it has it still";
}

TEST_F(ModelRegistryTest, WithNoWorkerLeftNothingChanges) {
  join(kOne, {model(0, "x"), model(1, "y")});
  join(kTwo, {model(0, "x"), model(1, "y")});
  withdraw(kOne, 1);
  lose(kTwo);
  EXPECT_EQ(served(), "x 1");
  lose(kOne);
  EXPECT_EQ(served(), "x 1");
  pass(ModelRegistry::kNotificationTime);
  EXPECT_THAT(removed_, ElementsAre(ModelId(1))) << "what retires goes on retiring";
}

TEST_F(ModelRegistryTest, LeavingAloneChangesNothing) {
  join(kOne, {model(0, "x"), model(1, "y")});
  leave(kOne);
  withdraw(kOne, 1);
  offer(kOne, model(2, "z"));
  EXPECT_EQ(served(), "x 1, y 1");
}

TEST_F(ModelRegistryTest, ALaterWorkerHoldsACandidateUp) {
  join(kOne, {model(0, "x")});
  join(kTwo, {model(0, "x")});
  offer(kOne, model(1, "y"));
  join(kThree, {model(0, "x")});
  offer(kTwo, model(1, "y"));
  EXPECT_EQ(served(), "x 1");
  offer(kThree, model(1, "y"));
  EXPECT_EQ(served(), "x 1, y 1");
}

TEST_F(ModelRegistryTest, ANewWorkerMayBringACandidate) {
  join(kOne, {model(0, "x")});
  join(kTwo, {model(0, "x")});
  offer(kOne, model(1, "x", "2"));
  lose(kTwo);
  EXPECT_EQ(served(), "x 2");
  pass(ModelRegistry::kNotificationTime);
  end_removals();
  offer(kOne, model(2, "y"));
  EXPECT_THAT(join(kTwo, {model(0, "x", "2"), model(1, "y")}), ElementsAre(ModelId(1), ModelId(2)));
}

// ---- Whatever happens ----

// A worker's view, from the messages that it receives alone.
struct Believer {
  std::map<uint32_t, ModelInfo> models;
  std::map<uint32_t, ModelId> names;
  std::set<uint32_t> withdrawn;
  uint32_t next = 0;
};

TEST_F(ModelRegistryTest, WorkersAndControllerAgreeWhateverHappens) {
  Random random(7);
  std::map<WorkerId, Believer> believers;
  uint64_t next_worker = 1;
  const auto some_model = [&](Believer& worker) {
    return model(worker.next++, std::string(1, static_cast<char>('x' + random.below(3))),
                 std::to_string(random.below(3)));
  };
  for (int step = 0; step < 20000; ++step) {
    now_ += Duration::milliseconds(static_cast<int64_t>(random.below(700)));
    const uint64_t what = random.below(10);
    auto chosen = believers.begin();
    if (!believers.empty()) std::advance(chosen, static_cast<ptrdiff_t>(random.below(believers.size())));
    if (what == 0 && believers.size() < 4) {
      Believer worker;
      std::vector<ModelInfo> models;
      for (const auto& [id, info] : added_) {
        if (registry_.serves(id)) (models.emplace_back(*info)).id = ModelId(worker.next++);
      }
      models.push_back(some_model(worker));
      if (registry_.check("cpu", models).ok()) {
        const WorkerId id(next_worker++);
        const std::vector<ModelId> names = join(id, models);
        for (size_t i = 0; i < models.size(); ++i) {
          worker.models.emplace(models[i].id.value(), models[i]);
          if (names[i] != kUnnamed) worker.names.emplace(models[i].id.value(), names[i]);
        }
        believers.emplace(id, worker);
      }
    } else if (what == 1 && !believers.empty() && random.below(4) == 0) {
      lose(chosen->first);
      believers.erase(chosen);
    } else if (what < 6 && !believers.empty()) {
      const ModelInfo info = some_model(chosen->second);
      if (registry_.offer(chosen->first, info).ok()) chosen->second.models.emplace(info.id.value(), info);
    } else if (!believers.empty() && !chosen->second.models.empty()) {
      auto own = chosen->second.models.begin();
      std::advance(own, static_cast<ptrdiff_t>(random.below(chosen->second.models.size())));
      if (chosen->second.withdrawn.insert(own->first).second) withdraw(chosen->first, own->first);
    }
    decide();
    if (random.below(2) == 0) end_removals();

    for (auto& [id, worker] : believers) {
      for (const auto& [own, name] : named(id)) {
        ASSERT_TRUE(worker.models.contains(own));
        ASSERT_TRUE(worker.names.emplace(own, name).second) << "named once";
        ASSERT_EQ(worker.models.at(own).version, added_.at(name)->version);
      }
      for (const uint32_t own : released(id)) {
        ASSERT_EQ(worker.models.erase(own), 1u);
        worker.names.erase(own);
        worker.withdrawn.erase(own);
      }
      for (const auto& [name, info] : added_) {
        const auto has =
            std::ranges::count_if(worker.names, [id = name](const auto& named) { return named.second == id; });
        ASSERT_LE(has, 1);
        ASSERT_TRUE(has == 1 || !registry_.serves(name)) << "all have what is served";
      }
    }
  }
  EXPECT_GT(added_.size(), 10u);
  EXPECT_GT(removed_.size(), 100u);
}

}  // namespace
}  // namespace foliot
