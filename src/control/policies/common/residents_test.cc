#include "control/policies/common/residents.h"

#include <gtest/gtest.h>

#include "control/policies/common/test_dispatcher.h"
#include "foundation/base/test_time.h"

namespace foliot {
namespace {

class ResidentsTest : public ::testing::Test {
 protected:
  ResidentsTest() : dispatcher_(2, 4), residents_(dispatcher_.cluster()) {
    for (uint32_t id = 0; id < 6; ++id) dispatcher_.add_model(id, 2);
  }

  void load(uint32_t device, uint32_t model, int64_t when) {
    dispatcher_.now = at(when);
    ASSERT_EQ(dispatcher_.load(DeviceId(device), ModelId(model), {at(when), at(when)}), Verdict::kAccepted);
    residents_.on_outcome(dispatcher_.finish());
  }
  bool make_room(
      uint32_t pages, const Residents::MayGo& may_go = [](ModelId) { return true; }) {
    return residents_.make_room(DeviceId(0), pages, may_go, dispatcher_);
  }
  bool loaded(uint32_t model) { return dispatcher_.cluster().placed(DeviceId(0), ModelId(model)); }

  TestDispatcher dispatcher_;
  Residents residents_;
};

TEST_F(ResidentsTest, KnowsTheHoldersOfAModel) {
  load(1, 0, 0);
  load(0, 0, 1);
  EXPECT_EQ(residents_.holders(ModelId(0)), (std::vector{DeviceId(0), DeviceId(1)}));
  EXPECT_TRUE(residents_.holders(ModelId(1)).empty());
  ASSERT_TRUE(make_room(4));
  EXPECT_EQ(residents_.holders(ModelId(0)), std::vector{DeviceId(1)});
}

TEST_F(ResidentsTest, EvictsTheLeastRecentlyUsed) {
  load(0, 0, 0);
  load(0, 1, 10);
  dispatcher_.use(DeviceId(0), ModelId(0), at(20));
  ASSERT_TRUE(make_room(2));
  EXPECT_TRUE(loaded(0));
  EXPECT_FALSE(loaded(1));
}

TEST_F(ResidentsTest, SparesWhatIsInUseOrMayNotGo) {
  load(0, 0, 0);
  load(0, 1, 10);
  dispatcher_.begin_use(DeviceId(0), ModelId(0), at(11));
  EXPECT_FALSE(make_room(2, [](ModelId model) { return model != ModelId(1); }));
  EXPECT_TRUE(loaded(0) && loaded(1));
  EXPECT_TRUE(make_room(2));
  EXPECT_TRUE(loaded(0));
  EXPECT_FALSE(loaded(1));
}

TEST_F(ResidentsTest, DoesNothingWhereNotEnoughWouldBeFree) {
  load(0, 0, 0);
  EXPECT_FALSE(make_room(5));
  EXPECT_TRUE(loaded(0));
  EXPECT_TRUE(make_room(2));
  EXPECT_TRUE(loaded(0));
}

TEST_F(ResidentsTest, TakesBackWhatTheWorkerRefusedToUnload) {
  load(0, 0, 0);
  ASSERT_TRUE(make_room(4));
  residents_.on_outcome(dispatcher_.refuse_unload());
  EXPECT_EQ(residents_.holders(ModelId(0)), std::vector{DeviceId(0)});
  EXPECT_TRUE(make_room(4));
}

}  // namespace
}  // namespace foliot
