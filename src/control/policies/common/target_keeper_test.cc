#include "control/policies/common/target_keeper.h"

#include <gtest/gtest.h>

#include "control/policies/common/residents.h"
#include "control/policies/common/test_dispatcher.h"
#include "foundation/base/test_time.h"

namespace foliot {
namespace {

// Three devices of four pages, and models of two.
class TargetKeeperTest : public ::testing::Test, private TargetKeeper::Owner {
 protected:
  TargetKeeperTest() : dispatcher_(3, 4), residents_(dispatcher_.cluster()), keeper_(dispatcher_.cluster(), *this) {
    for (uint32_t id = 0; id < 20; ++id) dispatcher_.add_model(id, 2);
  }

  void set_target(uint32_t model, const ModelTarget& target) {
    dispatcher_.set_target(ModelId(model), target);
    keeper_.on_target_changed(ModelId(model));
  }
  // Returns how many actions it sent.
  size_t plan(int64_t when) {
    dispatcher_.now = at(when);
    dispatcher_.actions.clear();
    wake_ = keeper_.plan(at(when), dispatcher_);
    return dispatcher_.actions.size();
  }
  void finish(const Action& action) {
    dispatcher_.finish(action);
    residents_.on_outcome(action);
    keeper_.on_outcome(action, dispatcher_.now);
  }
  void finish_all() {
    for (const Action& action : std::vector(dispatcher_.actions)) finish(action);
  }
  // Loaded by its policy.
  void load(uint32_t device, uint32_t model, int64_t when) {
    dispatcher_.now = at(when);
    ASSERT_EQ(dispatcher_.load(DeviceId(device), ModelId(model), {}), Verdict::kAccepted);
    finish(Action(dispatcher_.actions.back()));
  }
  std::vector<uint32_t> holders(uint32_t model) const {
    std::vector<uint32_t> found;
    for (uint32_t device = 0; device < 3; ++device) {
      if (dispatcher_.cluster().placed(DeviceId(device), ModelId(model))) found.push_back(device);
    }
    return found;
  }

  TestDispatcher dispatcher_;
  Residents residents_;
  TargetKeeper keeper_;
  TimePoint wake_;

 private:
  bool load_for_target(DeviceId device, ModelId model, TimePoint now, Dispatcher& dispatcher) override {
    const auto any = [](ModelId) { return true; };
    return residents_.make_room(device, dispatcher_.cluster().pages(device, model), any, dispatcher) &&
           dispatcher.load(device, model, {now, now + ms(100)}) == Verdict::kAccepted;
  }
  void on_retired(DeviceId device, ModelId /*model*/, TimePoint /*now*/) override {
    residents_.on_device_changed(device);
  }
};

TEST_F(TargetKeeperTest, DoesNothingWithoutTargets) {
  load(0, 0, 0);
  keeper_.on_device_changed();
  EXPECT_EQ(plan(1), 0u);
  EXPECT_TRUE(wake_.is_infinite());
}

TEST_F(TargetKeeperTest, LoadsWhereThereIsRoomAndThenWhereItCanBeMade) {
  load(0, 5, 0);
  load(0, 6, 1);
  set_target(1, {.copies_least = 2});
  EXPECT_EQ(plan(10), 2u);
  EXPECT_EQ(holders(1), (std::vector{1u, 2u}));
  finish_all();
  set_target(1, {.copies_least = 3});
  EXPECT_EQ(plan(20), 2u);
  EXPECT_EQ(holders(1), (std::vector{0u, 1u, 2u}));
  EXPECT_TRUE(holders(5).empty()) << "it was used the longest ago";
  EXPECT_FALSE(holders(6).empty());
}

TEST_F(TargetKeeperTest, EvictsNoCopyThatAnotherTargetRequires) {
  for (uint32_t model = 0; model < 6; ++model) set_target(model, {.copies_least = 1});
  EXPECT_EQ(plan(0), 6u);
  finish_all();
  set_target(7, {.copies_least = 1});
  EXPECT_EQ(plan(20), 0u);
  EXPECT_TRUE(wake_.is_infinite()) << "it waits for a change";
  set_target(3, {});
  EXPECT_EQ(plan(21), 0u);
  keeper_.on_device_changed();
  EXPECT_EQ(plan(22), 2u);
  EXPECT_TRUE(holders(3).empty());
  EXPECT_EQ(holders(7).size(), 1u);
}

TEST_F(TargetKeeperTest, TriesAgainAfterAnExecButNotOften) {
  for (uint32_t device = 0; device < 3; ++device) {
    load(device, 8, 0);
    load(device, 9, 0);
    dispatcher_.begin_use(DeviceId(device), ModelId(8), at(1));
    dispatcher_.begin_use(DeviceId(device), ModelId(9), at(1));
  }
  set_target(0, {.copies_least = 1});
  EXPECT_EQ(plan(10), 0u) << "all are in use";
  EXPECT_TRUE(wake_.is_infinite());
  const Action exec{.type = ActionType::kInfer, .device = DeviceId(0), .model = ModelId(8)};
  keeper_.on_outcome(exec, at(11));
  EXPECT_EQ(plan(11), 0u);
  keeper_.on_outcome(exec, at(11));
  EXPECT_EQ(plan(11), 0u);
  EXPECT_EQ(wake_, at(11) + TargetKeeper::kRetryInterval);
  EXPECT_EQ(plan(12), 0u);
  EXPECT_TRUE(wake_.is_infinite());
}

TEST_F(TargetKeeperTest, RetiresWhatIsLoadingAndThenWhatHasTheLeastToDo) {
  load(0, 0, 0);
  load(1, 0, 5);
  dispatcher_.begin_use(DeviceId(0), ModelId(0), at(6));
  dispatcher_.now = at(7);
  ASSERT_EQ(dispatcher_.load(DeviceId(2), ModelId(0), {}), Verdict::kAccepted);
  set_target(0, {.copies_most = 2});
  plan(8);
  EXPECT_EQ(dispatcher_.retired, std::vector{DeviceId(2)});
  set_target(0, {.copies_most = 1});
  plan(9);
  EXPECT_EQ(dispatcher_.retired, (std::vector{DeviceId(2), DeviceId(1)}));
  EXPECT_EQ(holders(0), std::vector{0u}) << "it is in use, and the only one";
}

TEST_F(TargetKeeperTest, LoadsOnNoMoreDevicesThanItMay) {
  set_target(0, {.copies_least = 2, .copies_most = 2});
  plan(0);
  keeper_.on_device_changed();
  EXPECT_EQ(plan(1), 0u);
  EXPECT_EQ(holders(0).size(), 2u);
}

TEST_F(TargetKeeperTest, OneTurnSendsABoundedNumberOfActions) {
  for (uint32_t model = 0; model < 20; ++model) set_target(model, {.copies_least = 3});
  EXPECT_LE(plan(0), TargetKeeper::kActionsPerTurn);
  EXPECT_EQ(wake_, at(0)) << "there is more to be looked at";
  for (int turn = 0; turn < 10 && wake_ == at(0); ++turn) plan(0);
  EXPECT_TRUE(wake_.is_infinite());
}

}  // namespace
}  // namespace foliot
