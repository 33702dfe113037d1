#include "control/policies/common/on_demand_loading.h"

#include <gtest/gtest.h>

#include "control/policies/common/test_dispatcher.h"
#include "foundation/base/test_time.h"

namespace foliot {
namespace {

class OnDemandLoadingTest : public ::testing::Test {
 protected:
  OnDemandLoadingTest()
      : dispatcher_(2, 4), residents_(dispatcher_.cluster()), loads_(dispatcher_.cluster(), residents_) {
    for (uint32_t id = 0; id < 6; ++id) dispatcher_.add_model(id, 2);
  }

  void want(uint32_t model, int64_t order, Duration work = ms(2)) {
    loads_.set_want(ModelId(model), OnDemandLoading::Want{at(order), work});
  }
  // The models that were asked for, in that order.
  std::vector<uint32_t> plan(int64_t when) {
    dispatcher_.now = at(when);
    dispatcher_.actions.clear();
    loads_.plan(at(when), dispatcher_);
    std::vector<uint32_t> models;
    for (const Action& action : dispatcher_.actions) {
      if (action.type == ActionType::kLoad) models.push_back(action.model.value());
    }
    return models;
  }
  // Loads a model and lets it be.
  void load(uint32_t device, uint32_t model, int64_t when) {
    dispatcher_.now = at(when);
    ASSERT_EQ(dispatcher_.load(DeviceId(device), ModelId(model), {}), Verdict::kAccepted);
    residents_.on_outcome(dispatcher_.finish());
  }
  bool placed(uint32_t device, uint32_t model) {
    return dispatcher_.cluster().placed(DeviceId(device), ModelId(model));
  }

  TestDispatcher dispatcher_;
  Residents residents_;
  OnDemandLoading loads_;
};

TEST_F(OnDemandLoadingTest, LoadsWhatIsWantedFirstAndSpreadsIt) {
  want(3, 20);
  want(1, 10);
  EXPECT_EQ(plan(0), (std::vector<uint32_t>{1, 3}));
  EXPECT_NE(dispatcher_.actions[0].device, dispatcher_.actions[1].device);
  EXPECT_TRUE(plan(1).empty());
}

TEST_F(OnDemandLoadingTest, EvictsWhatNoRequestWaitsForAndWhatIsWantedLater) {
  load(0, 0, 0);
  load(0, 1, 1);
  load(1, 2, 2);
  load(1, 3, 3);
  want(0, 5);
  want(1, 50);
  want(2, 5);
  want(3, 5);
  want(4, 10);
  EXPECT_EQ(plan(20), std::vector<uint32_t>{4});
  EXPECT_FALSE(placed(0, 1));
  want(5, 60);  // after all that is there
  EXPECT_TRUE(plan(21).empty());
  loads_.set_want(ModelId(2), std::nullopt);
  EXPECT_EQ(plan(23), std::vector<uint32_t>{5});
  EXPECT_FALSE(placed(1, 2));
}

TEST_F(OnDemandLoadingTest, CopiesWhatKeepsItsDeviceBusyForLong) {
  load(0, 0, 0);
  want(0, 5, ms(7));
  EXPECT_TRUE(plan(1).empty());
  want(0, 5, ms(9));
  EXPECT_EQ(plan(2), std::vector<uint32_t>{0});
  EXPECT_TRUE(placed(1, 0));
  want(0, 5, ms(50));
  EXPECT_TRUE(plan(3).empty()) << "one copy is on its way";
}

TEST_F(OnDemandLoadingTest, LeavesABusyDeviceAloneWithCopies) {
  load(0, 0, 0);
  load(1, 1, 0);
  dispatcher_.begin_use(DeviceId(1), ModelId(1), at(1));
  want(0, 5, ms(50));
  EXPECT_TRUE(plan(2).empty());
}

TEST_F(OnDemandLoadingTest, AnotherModelIsServedWhereOneFitsNowhere) {
  dispatcher_.add_model(6, 100);
  want(6, 1);
  want(0, 2);
  EXPECT_EQ(plan(0), std::vector<uint32_t>{0});
}

}  // namespace
}  // namespace foliot
