#include "control/controller/load_back_off.h"

#include <gtest/gtest.h>

#include "foundation/base/test_time.h"

namespace foliot {
namespace {

constexpr DeviceId kDevice(1);
constexpr ModelId kModel(7);

class LoadBackOffTest : public ::testing::Test {
 protected:
  bool may_load(int64_t ms) const { return back_off_.may_load(kDevice, kModel, at(ms)); }
  void fail(int64_t ms) { back_off_.on_failure(kDevice, kModel, at(ms)); }

  LoadBackOff back_off_;
};

TEST_F(LoadBackOffTest, APairBacksOffAndOthersDoNot) {
  EXPECT_TRUE(may_load(0));
  EXPECT_FALSE(back_off_.has_failed(kModel));
  fail(0);
  EXPECT_FALSE(may_load(99));
  EXPECT_TRUE(may_load(100));
  EXPECT_TRUE(back_off_.may_load(DeviceId(0), kModel, at(0)));
  EXPECT_TRUE(back_off_.may_load(kDevice, ModelId(6), at(0)));
  EXPECT_TRUE(back_off_.has_failed(kModel));
  EXPECT_FALSE(back_off_.has_failed(ModelId(6)));
  EXPECT_FALSE(back_off_.has_failed(ModelId(8)));
}

TEST_F(LoadBackOffTest, EachFailureDoublesItUpToALimit) {
  fail(0);
  fail(100);
  EXPECT_FALSE(may_load(299));
  EXPECT_TRUE(may_load(300));
  for (int i = 0; i < 100; ++i) fail(1000);
  EXPECT_FALSE(may_load(30'999));
  EXPECT_TRUE(may_load(31'000));
}

TEST_F(LoadBackOffTest, ASuccessfulExecEndsIt) {
  fail(0);
  fail(100);
  back_off_.on_success(kDevice, kModel);
  EXPECT_TRUE(may_load(100));
  EXPECT_FALSE(back_off_.has_failed(kModel));
  EXPECT_TRUE(back_off_.next_end().is_infinite());
  fail(200);
  EXPECT_TRUE(may_load(300)) << "the first of a new row";
}

TEST_F(LoadBackOffTest, ReportsOnceWhichHaveEnded) {
  EXPECT_TRUE(back_off_.next_end().is_infinite());
  fail(0);
  back_off_.on_failure(kDevice, ModelId(8), at(10));
  back_off_.on_failure(DeviceId(0), kModel, at(20));
  EXPECT_EQ(back_off_.next_end(), at(100));
  EXPECT_TRUE(back_off_.take_ended(at(99)).empty());
  EXPECT_EQ(back_off_.take_ended(at(120)), (std::vector{DeviceId(0), kDevice}));
  EXPECT_TRUE(back_off_.take_ended(at(500)).empty());
  fail(500);
  EXPECT_FALSE(may_load(699)) << "the row of failures goes on";
}

TEST_F(LoadBackOffTest, ForgetsDevicesAndModels) {
  fail(0);
  back_off_.forget_device(DeviceId(0));
  back_off_.forget_model(ModelId(6));
  EXPECT_FALSE(may_load(1));
  back_off_.forget_device(kDevice);
  EXPECT_TRUE(may_load(1));
  fail(0);
  back_off_.forget_model(kModel);
  EXPECT_TRUE(may_load(1));
  EXPECT_TRUE(back_off_.next_end().is_infinite());
}

}  // namespace
}  // namespace foliot
