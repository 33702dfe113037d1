#include "control/policies/foliot/board.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "control/policies/common/test_dispatcher.h"
#include "foundation/base/test_time.h"

namespace foliot::foliot_policy {
namespace {

// EXEC of 1, 2 and 4 rows takes 2, 3 and 5 ms.
class BoardTest : public ::testing::Test {
 protected:
  ModelId add(uint32_t holders) {
    const ModelInfo& model = dispatcher_.add_model(models_++, 1);
    board_.on_model_added(model);
    for (uint32_t device = 0; device < holders; ++device) {
      dispatcher_.load(DeviceId(device), model.id, {});
      dispatcher_.finish();
      board_.set_loaded(DeviceId(device), model.id, true);
    }
    return model.id;
  }
  Request ask(ModelId model, TimePoint deadline) {
    const uint64_t id = ++requests_;
    const Request request{.id = RequestId(id), .model = model, .arrival = at(0), .deadline = deadline, .sequence = id};
    board_.add(request);
    return request;
  }
  Duration backlog(uint32_t device, TimePoint now = at(0)) { return board_.backlog(DeviceId(device), now); }
  struct Candidates {
    std::vector<uint32_t> models;
    double stand_for = 0;
  };
  Candidates candidates(uint32_t count_max, const LaneStart& on = {0, at(0)}) {
    Candidates found;
    found.stand_for = board_.for_each_candidate(DeviceId(0), count_max, on,
                                                [&](ModelId model) { found.models.push_back(model.value()); });
    return found;
  }

  TestDispatcher dispatcher_{10, 100};
  Board board_{dispatcher_.cluster()};
  uint32_t models_ = 0;
  uint64_t requests_ = 0;
};

TEST_F(BoardTest, WhatWaitsIsSharedOutOverTheDevicesThatHoldItsModel) {
  const ModelId model = add(2);
  EXPECT_EQ(backlog(0), Duration());
  for (int i = 0; i < 4; ++i) ask(model, at(100));
  EXPECT_EQ(backlog(0), ms(5) / 2);
  EXPECT_EQ(backlog(1), ms(5) / 2);
  EXPECT_EQ(backlog(2), Duration());
}

// Two rows take 4.5 ms, and four take 10.
TEST_F(BoardTest, BatchesAreNotExpectedToGrowToSizesThatServeRowsSlower) {
  const ModelId model = add(1);
  dispatcher_.set_exec(model, Duration::microseconds(4500), 1);
  dispatcher_.set_exec(model, ms(10), 2);
  for (int i = 0; i < 1000; ++i) {
    const TimePoint now = at(i);
    board_.note_arrival({.id = RequestId(1), .model = model, .arrival = now, .deadline = now + ms(100)}, now);
  }
  EXPECT_EQ(board_.expected_size(model, dispatcher_.cluster().batch_sizes(DeviceId(0), model)), 0u);
  EXPECT_EQ(board_.grown_work(DeviceId(0), model, BucketId(0), 8), ms(16));
}

TEST_F(BoardTest, RowsThatFillNoBatchTakeNoLongerThanOneThatIsNotFull) {
  const ModelId model = add(1);
  dispatcher_.set_exec(model, ms(9), 1);
  for (int i = 0; i < 3; ++i) ask(model, at(100));
  EXPECT_EQ(backlog(0), ms(5)) << "a batch of four, not of two and one";
}

TEST_F(BoardTest, WhatWaitsForAModelThatManyHoldIsSharedOutOverAll) {
  const ModelId model = add(9);
  EXPECT_EQ(backlog(0), Duration());
  const Request first = ask(model, at(100));
  for (int i = 0; i < 3; ++i) ask(model, at(100));
  EXPECT_EQ(backlog(0), ms(5) / 10);
  EXPECT_EQ(board_.backlog_until(DeviceId(0), at(100), at(0)), ms(5) / 10) << "whatever is due when";
  board_.remove(first);
  EXPECT_EQ(backlog(0), ms(5) / 10) << "two rows and one row";
  board_.set_loaded(DeviceId(8), model, false);
  EXPECT_EQ(backlog(0), ms(5) / 8) << "eight devices are few";
  EXPECT_EQ(backlog(9), Duration());
  board_.set_loaded(DeviceId(8), model, true);
  EXPECT_EQ(backlog(0), ms(5) / 10);
  board_.on_model_removed(model);
  EXPECT_EQ(backlog(0), Duration());
}

TEST_F(BoardTest, CandidatesAreTheModelsDueFirstAndThoseThatMostRequestsWaitFor) {
  for (int64_t i = 0; i < 20; ++i) ask(add(i % 2 == 0 ? 1 : 9), at(200 - 10 * i));
  for (const uint32_t model : {3u, 6u, 6u}) ask(ModelId(model), at(200));
  const Candidates some = candidates(4);
  EXPECT_EQ(some.models, (std::vector<uint32_t>{3, 6, 18, 19}));
  EXPECT_DOUBLE_EQ(some.stand_for, 23.0 / 7) << "2 + 3 + 1 + 1 of the 23 requests";
  const Candidates all = candidates(20);
  EXPECT_EQ(all.models.size(), 20u);
  EXPECT_DOUBLE_EQ(all.stand_for, 1);
}

TEST_F(BoardTest, CandidatesFollowWhatIsQueued) {
  for (int64_t i = 0; i < 5; ++i) add(1);
  const Request first = ask(ModelId(0), at(10));
  for (uint32_t i = 1; i < 5; ++i) ask(ModelId(i), at(10 + 10 * i));
  EXPECT_EQ(candidates(2).models, (std::vector<uint32_t>{0, 1}));
  board_.remove(first);
  ask(ModelId(0), at(100));
  ask(ModelId(4), at(100));
  EXPECT_EQ(candidates(2).models, (std::vector<uint32_t>{1, 4}));
  board_.erase(ModelId(4), BucketId(0), 0, 2);
  EXPECT_EQ(candidates(2).models, (std::vector<uint32_t>{0, 1})) << "of equals the first";
  EXPECT_FALSE(std::ranges::count(candidates(4).models, 4u));
}

// One row takes 2 ms on both lanes, and is expected to take 4 on one.
TEST_F(BoardTest, WhatLanesCannotAnswerInTimeIsNoCandidate) {
  dispatcher_.set_lane_count(DeviceId(0), 2);
  for (int64_t i = 0; i < 5; ++i) ask(add(1), at(i < 2 ? 3 : 10 + 10 * i));
  ask(ModelId(1), at(100));
  EXPECT_EQ(candidates(2).models, (std::vector<uint32_t>{0, 1}));
  const Candidates narrow = candidates(2, {1, at(0)});
  EXPECT_EQ(narrow.models, (std::vector<uint32_t>{1, 2}))
      << "the first of those with one row each, and what is due first";
  EXPECT_DOUBLE_EQ(narrow.stand_for, 4.0 / 2) << "of the model 1 only what is due later counts";
  EXPECT_EQ(candidates(2, {1, at(35)}).models, (std::vector<uint32_t>{1, 3}));
}

// Four rows take 5 ms on both lanes, and 6 on one: three of the device's time.
TEST_F(BoardTest, WhatWaitsOnLanesIsTheLeastPartOfTheDevice) {
  dispatcher_.set_lane_count(DeviceId(0), 2);
  const ModelId model = add(1);
  for (int i = 0; i < 4; ++i) ask(model, at(100));
  EXPECT_EQ(backlog(0), ms(5)) << "in proportion";
  dispatcher_.set_exec(model, ms(6), 2, width_index(1, 2));
  board_.exec_over(DeviceId(0), model, 1);
  EXPECT_EQ(backlog(0), ms(5)) << "each takes both";
  board_.set_divides(DeviceId(0), true);
  EXPECT_EQ(backlog(0), ms(3));
}

// 2 ms for one row, 5 for four; 500 requests per second fill four within 8 ms.
TEST_F(BoardTest, BatchesGrowAsFarAsTheyFillInTime) {
  dispatcher_.set_lane_count(DeviceId(0), 2);
  const ModelId model = add(1);
  TimePoint now = at(0);
  const auto sent = [&](Duration slo) {
    for (int i = 0; i < 1000; ++i) {
      board_.note_arrival({.id = RequestId(1), .model = model, .arrival = now, .deadline = now + slo}, now);
      now += ms(2);
    }
    board_.exec_sent(DeviceId(0), model, BucketId(0), /*batch_index=*/0, /*rows=*/1, now);
    return board_.demanded_exec(DeviceId(0), 0);
  };
  const auto grown = [&](Duration slo) { return sent(slo).grown.to_milliseconds(); };
  EXPECT_EQ(sent(ms(100)).now, ms(2));
  EXPECT_NEAR(grown(ms(100)), 5.0 / 4, 1e-3);
  // Two rows take 3 ms, and fill in 4; the mean of all is kept.
  EXPECT_NEAR(grown(ms(12)), (2 * 5.0 / 4 + 3.0 / 2) / 3, 1e-3) << "four would be late";
  EXPECT_NEAR(grown(ms(4)), (2 * 5.0 / 4 + 3.0 / 2 + 2) / 4, 1e-3) << "none would be in time";
}

TEST_F(BoardTest, ARequestIsBehindAnotherThatIsDueNoLaterAndHasNotExpired) {
  const ModelId model = add(1);
  const Request other{.id = RequestId(99), .model = model, .deadline = at(100)};
  EXPECT_FALSE(board_.waits_behind_another(other, at(0)));
  ask(model, at(100));
  EXPECT_FALSE(board_.waits_behind_another(other, at(0))) << "it is not known when that one expires";
  board_.model(model).expiry = at(50);
  EXPECT_TRUE(board_.waits_behind_another(other, at(50)));
  EXPECT_FALSE(board_.waits_behind_another(other, at(51)));
  EXPECT_FALSE(board_.waits_behind_another({.id = RequestId(99), .model = model, .deadline = at(99)}, at(50)));
}

TEST_F(BoardTest, ManyChangesAreTakenInTogether) {
  std::vector<ModelId> models;
  for (int i = 0; i < 60; ++i) models.push_back(add(1));
  for (const ModelId model : models) ask(model, at(100));
  EXPECT_EQ(backlog(0), ms(120));
  for (int i = 0; i < 10; ++i) ask(models[static_cast<size_t>(i)], at(100));
  EXPECT_EQ(backlog(0), ms(130)) << "few are taken in at once";
  for (int i = 20; i < 45; ++i) ask(models[static_cast<size_t>(i)], at(100));
  EXPECT_EQ(backlog(0, at(1)), ms(130));
  EXPECT_EQ(backlog(0, at(3)), ms(155));
}

}  // namespace
}  // namespace foliot::foliot_policy
