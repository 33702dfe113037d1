#include "virtual/emulation/emulated_worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "foundation/base/test_time.h"
#include "virtual/emulation/emulated_models.h"

namespace foliot {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kPageBytes = uint64_t{16} << 20;

class Outcomes : public OutcomeSink {
 public:
  void report(const Outcome& outcome) override { all.push_back(outcome); }
  std::vector<Outcome> all;
};

class EmulatedWorkerTest : public ::testing::Test {
 protected:
  static NoiseOptions silence() { return {.exec_deviation = 0, .load_deviation = 0, .copy = Duration()}; }

  void send(ActionType type, uint32_t model, TimePoint earliest = {}, TimePoint latest = TimePoint::infinite_future()) {
    Action action{
        .id = ActionId(++sent_), .type = type, .model = ModelId(model), .earliest = earliest, .latest = latest};
    if (type == ActionType::kInfer) {
      action.batch_size = 1;
      action.rows.add({RequestId(sent_), PayloadHandle(sent_)});
    }
    worker_.send(action);
  }
  const Outcome& last() const { return outcomes_.all.back(); }

  EmulationClock clock_;
  Outcomes outcomes_;
  std::vector<ModelInfo> models_ = *parse_emulated_models("resnet18:2,resnet50", kPageBytes);
  EmulatedWorker worker_{{.page_count = 8, .noise = silence()}, models_, clock_, outcomes_};
  uint64_t sent_ = 0;
};

TEST_F(EmulatedWorkerTest, TakesAsLongAsItsProfileHoweverLateItIsLookedAt) {
  send(ActionType::kLoad, 0);  // 3.81 ms
  clock_.advance(at_us(3809));
  EXPECT_TRUE(outcomes_.all.empty());
  EXPECT_EQ(clock_.next(), at_us(3810));
  clock_.advance(at_us(5000));
  ASSERT_EQ(outcomes_.all.size(), 1u);
  EXPECT_TRUE(last().done());
  EXPECT_EQ(last().end, at_us(3810));
  send(ActionType::kInfer, 0);  // 1.27 ms
  send(ActionType::kInfer, 0);
  clock_.advance(at_us(100'000));
  ASSERT_EQ(outcomes_.all.size(), 3u);
  EXPECT_EQ(outcomes_.all[1].start, at_us(5000));
  EXPECT_EQ(outcomes_.all[1].end, at_us(6270));
  EXPECT_EQ(outcomes_.all[2].start, at_us(6270));
  EXPECT_EQ(clock_.next(), TimePoint::infinite_future());
}

TEST_F(EmulatedWorkerTest, KeepsWindows) {
  send(ActionType::kLoad, 0, at_us(1000));
  send(ActionType::kInfer, 0, at_us(9000), at_us(9001));
  send(ActionType::kInfer, 0, at_us(9000), at_us(9001));  // the first keeps EXEC busy for longer than that
  clock_.advance(at_us(1'000'000));
  ASSERT_EQ(outcomes_.all.size(), 3u);
  EXPECT_EQ(outcomes_.all[0].start, at_us(1000));
  // A refusal does not wait until the result of the other is out.
  EXPECT_EQ(outcomes_.all[1].action, ActionId(3));
  EXPECT_EQ(outcomes_.all[1].status, OutcomeStatus::kTooLate);
  EXPECT_EQ(outcomes_.all[2].start, at_us(9000));
}

TEST_F(EmulatedWorkerTest, BalancesItsPages) {
  send(ActionType::kInfer, 0);  // not loaded
  send(ActionType::kLoad, 2);   // 7 of 8 pages
  send(ActionType::kLoad, 0);   // 3 pages
  clock_.advance(at_us(100'000));
  EXPECT_EQ(outcomes_.all[0].status, OutcomeStatus::kNotLoaded);
  EXPECT_EQ(last().status, OutcomeStatus::kNoPages);
  EXPECT_EQ(worker_.worker().load().page_cache().free_pages(), 1u);
  send(ActionType::kUnload, 2);
  clock_.advance(at_us(200'000));
  EXPECT_TRUE(last().done());
  EXPECT_EQ(worker_.worker().load().page_cache().free_pages(), 8u);
}

TEST(EmulatedModelsTest, ReadsWhatPeopleWrite) {
  const auto models = *parse_emulated_models("resnet50:2,resnet18", kPageBytes);
  ASSERT_EQ(models.size(), 3u);
  EXPECT_EQ(models[1].name, "resnet50-1");
  EXPECT_EQ(models[2].name, "resnet18");
  EXPECT_EQ(models[2].id, ModelId(2));
  EXPECT_EQ(parse_emulated_models("v100", kPageBytes)->size(), 6u);
}

TEST(EmulatedModelsTest, ReportsWhatIsWrong) {
  const auto error = [](const std::string& text) { return parse_emulated_models(text, kPageBytes).status().message(); };
  EXPECT_THAT(error("resnet51"), HasSubstr("no profile 'resnet51'; there are:"));
  EXPECT_THAT(error("resnet50:x"), HasSubstr("write PROFILE:COPIES"));
  EXPECT_THAT(error("resnet50:0"), HasSubstr("write PROFILE:COPIES"));
  EXPECT_THAT(error("nowhere.csv"), HasSubstr("nowhere.csv"));
  EXPECT_THAT(error(""), HasSubstr("no profile is named"));
}

}  // namespace
}  // namespace foliot
