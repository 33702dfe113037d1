#include "control/policies/overlap/overlap_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <span>

#include "control/controller/fake_duration_model.h"
#include "control/policies/common/policy_stage.h"
#include "control/policies/overlap/group_search.h"

namespace foliot::overlap {
namespace {

// Together they take this share of the sum of what they take alone, the longest at least.
class SharedDurations : public FakeDurationModel {
 public:
  explicit SharedDurations(double share) : share_(share) {}
  void together(std::span<const std::span<const ExecSegment>> groups, std::span<Duration> durations) const override {
    ++asked;
    for (size_t i = 0; i < groups.size(); ++i) {
      Duration sum;
      Duration longest;
      for (const ExecSegment& segment : groups[i]) {
        sum += segment.alone;
        longest = std::max(longest, segment.alone);
      }
      durations[i] = std::max(longest, sum.scaled(share_));
    }
  }
  mutable int asked = 0;

 private:
  const double share_;
};

Runnable with_operators(uint32_t count) {
  Runnable runnable;
  for (uint32_t i = 1; i <= count; ++i) runnable.operator_ends.push_back(static_cast<double>(i) / count);
  return runnable;
}

class GroupSearchTest : public ::testing::Test {
 protected:
  Candidate candidate(int64_t ms, uint32_t first = 0) const {
    return {.runnable = &runnable_, .whole = Duration::milliseconds(ms), .first = first};
  }
  static std::vector<uint32_t> lasts(const Group& group) {
    std::vector<uint32_t> lasts;
    for (uint32_t i = 0; i < group.size; ++i) lasts.push_back(group.segments[i].range.last);
    return lasts;
  }
  static constexpr uint32_t kEnd = OperatorRange::kEnd;

  Runnable runnable_ = with_operators(100);
  SharedDurations durations_{0.5};
};

TEST_F(GroupSearchTest, TakesWholeQueriesAndThenOperators) {
  const std::vector<Candidate> candidates{candidate(20), candidate(20), candidate(20), candidate(20)};
  EXPECT_EQ(lasts(search_group(candidates, Duration::milliseconds(40), durations_)),
            (std::vector<uint32_t>{kEnd, kEnd, kEnd, kEnd}));
  // 20 + 20 + 14 are half of 54.
  const Group group = search_group(candidates, Duration::microseconds(27'050), durations_);
  EXPECT_EQ(lasts(group), (std::vector<uint32_t>{kEnd, kEnd, 70}));
  EXPECT_EQ(group.duration, Duration::milliseconds(27));
  EXPECT_EQ(lasts(search_group(candidates, Duration(), durations_)), std::vector<uint32_t>{kEnd})
      << "the first is in it in any case";
}

TEST_F(GroupSearchTest, FindsTheSameAsTryingAll) {
  for (int64_t limit = 21; limit < 36; ++limit) {
    const std::vector<Candidate> candidates{candidate(20), candidate(60, 13)};
    const Group group = search_group(candidates, Duration::milliseconds(limit), durations_);
    uint32_t best = 13;
    for (uint32_t last = 14; last < 100; ++last) {
      const std::array<ExecSegment, 2> both{candidates[0].rest(), candidates[1].segment(last)};
      const std::span<const ExecSegment> asked(both);
      Duration expected;
      durations_.together(std::span(&asked, 1), std::span(&expected, 1));
      if (expected <= Duration::milliseconds(limit)) best = last;
    }
    EXPECT_EQ(group.size == 1 ? 13 : group.segments[1].range.last, best) << limit;
  }
}

TEST_F(GroupSearchTest, AsksOnceForEachRound) {
  search_group(std::vector<Candidate>{candidate(20), candidate(60)}, Duration::milliseconds(30), durations_);
  EXPECT_LE(durations_.asked, 1 + 4) << "whole queries, and ceil(log_4 100) rounds";
}

// Models whose EXEC takes 2 ms, on a device of four lanes and eight contexts.
class OverlapPolicyTest : public ::testing::Test {
 protected:
  explicit OverlapPolicyTest(double share = 0.6) : stage_(make_overlap_policy, 1, 8, durations(share)) {
    stage_.set_lane_count(0, 4, 8);
  }
  std::unique_ptr<DurationModel> durations(double share) const { return std::make_unique<SharedDurations>(share); }

  PolicyStage stage_;
};

TEST_F(OverlapPolicyTest, RunsQueriesOfDifferentModelsBesideEachOther) {
  const ModelId a = stage_.add_model();
  const ModelId b = stage_.add_model();
  stage_.request(a, 0, 60);
  stage_.request(a, 0, 70);
  const RequestId urgent = stage_.request(b, 0, 50);
  const auto sent = stage_.plan(0);
  ASSERT_EQ(sent.size(), 2u) << "one of each model";
  EXPECT_EQ(PolicyStage::rows(sent[0]), std::vector{urgent});
  EXPECT_FALSE(sent[0].lanes.overlaps(sent[1].lanes));
  EXPECT_NE(sent[0].context, sent[1].context);
  EXPECT_TRUE(sent[1].range.whole());
  EXPECT_EQ(sent[0].expected, Duration::from_milliseconds(2.4));
}

TEST_F(OverlapPolicyTest, RunsAloneOnAllLanesWhatHasNoCompany) {
  stage_.request(stage_.add_model(), 0, 50);
  const auto sent = stage_.plan(0);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].lanes, (LaneInterval{0, 4}));
}

TEST_F(OverlapPolicyTest, KeepsTheGroupWithinTheLeastHeadroom) {
  const ModelId a = stage_.add_model();
  const ModelId b = stage_.add_model();
  stage_.request(a, 0, 2.3);
  stage_.request(b, 0, 60);
  EXPECT_EQ(stage_.plan(0).size(), 1u) << "together they take 2.4 ms, and b is one operator";
}

TEST_F(OverlapPolicyTest, TheNextGroupIsChosenShortlyBeforeThisOneEnds) {
  const ModelId a = stage_.add_model();
  const ModelId b = stage_.add_model();
  for (int i = 0; i < 2; ++i) {
    stage_.request(a, 0, 50);
    stage_.request(b, 0, 50);
  }
  EXPECT_EQ(stage_.plan(0).size(), 2u);
  EXPECT_TRUE(stage_.plan(0.1).empty());
  const auto next = stage_.plan(2.0);
  ASSERT_EQ(next.size(), 2u);
  EXPECT_GE(next[0].earliest, PolicyStage::at(2.4)) << "a window in place of a barrier";
}

TEST_F(OverlapPolicyTest, LanesKeepAQueryOnAllOfThemApartFromGroups) {
  const ModelId a = stage_.add_model();
  const ModelId b = stage_.add_model();
  const auto request_both = [&](double when) {
    stage_.request(a, when, 60);
    stage_.request(b, when, 60);
  };
  const auto finish = [&](const std::vector<Action>& group, double when) {
    for (const Action& action : group) stage_.finish(action, when, Duration::milliseconds(2));
  };
  request_both(0);
  const auto first = stage_.plan(0);
  ASSERT_EQ(first.size(), 2u);
  stage_.request(a, 0, 60);
  const auto alone = stage_.plan(2.0);
  ASSERT_EQ(alone.size(), 1u);
  EXPECT_LE(alone[0].earliest, PolicyStage::at(2.0)) << "it waits for all lanes, whenever they are free";
  finish(first, 2.4);
  request_both(2.5);
  const auto second = stage_.plan(4.0);
  ASSERT_EQ(second.size(), 2u);
  EXPECT_LE(second[0].earliest, PolicyStage::at(4.0)) << "all lanes are free at once";
  finish(alone, 4.4);
  request_both(4.5);
  const auto third = stage_.plan(6.4);
  ASSERT_EQ(third.size(), 2u);
  EXPECT_GE(third[0].earliest, PolicyStage::at(6.8)) << "the lanes of the second are not free at once";
}

TEST_F(OverlapPolicyTest, AQueryOnAllLanesPassesNoGroup) {
  const ModelId a = stage_.add_model();
  const ModelId b = stage_.add_model();
  for (const ModelId model : {a, b}) stage_.set_exec(model, Duration::microseconds(200));
  for (int i = 0; i < 2; ++i) {
    stage_.request(a, 0, 60);
    stage_.request(b, 0, 60);
  }
  const auto both = stage_.plan(0);
  ASSERT_EQ(both.size(), 4u);
  EXPECT_GE(both[2].earliest, PolicyStage::at(0.24));
  for (const Action& action : std::span(both).first(2)) stage_.finish(action, 0.1, Duration::microseconds(100));
  stage_.request(a, 0.1, 60);
  const auto behind = stage_.plan(0.1);
  ASSERT_EQ(behind.size(), 1u);
  EXPECT_GE(behind[0].earliest, both[2].earliest) << "workers take what may begin first";
}

TEST_F(OverlapPolicyTest, GoesOnWithWhatItCut) {
  const ModelId a = stage_.add_model();
  const ModelId b = stage_.add_model({0}, 10);
  stage_.request(a, 0, 2.3);
  const RequestId cut = stage_.request(b, 0, 60);
  const auto sent = stage_.plan(0);
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[1].range, (OperatorRange{0, 9})) << "2 and 1.8 ms take 2.28 ms together";
  EXPECT_TRUE(stage_.plan(2.0).empty()) << "what is unfinished may be next";
  stage_.finish(sent[0], 2.1, Duration::milliseconds(2));
  stage_.finish(sent[1], 2.2, Duration::milliseconds(2));
  const auto next = stage_.plan(2.2);
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].range, (OperatorRange{9, OperatorRange::kEnd}));
  EXPECT_EQ(next[0].context, sent[1].context);
  EXPECT_EQ(PolicyStage::rows(next[0]), std::vector{cut});
}

TEST_F(OverlapPolicyTest, GivesUpWhatCannotBeFinishedInTime) {
  const ModelId a = stage_.add_model();
  const ModelId b = stage_.add_model({0}, 10);
  stage_.request(a, 0, 2.3);
  const RequestId cut = stage_.request(b, 0, 3);
  const auto sent = stage_.plan(0);
  ASSERT_EQ(sent.size(), 2u);
  stage_.finish(sent[0], 2.9, Duration::milliseconds(2));
  stage_.finish(sent[1], 2.9, Duration::milliseconds(2));
  EXPECT_TRUE(stage_.plan(2.9).empty()) << "0.2 ms are left to do";
  EXPECT_EQ(stage_.refused(), std::vector{cut});
}

class NoGainTest : public OverlapPolicyTest {
 protected:
  NoGainTest() : OverlapPolicyTest(0.97) {}
};

TEST_F(NoGainTest, WhatGainsNothingDoesNotOverlap) {
  const ModelId a = stage_.add_model();
  const ModelId b = stage_.add_model();
  stage_.request(a, 0, 50);
  stage_.request(b, 0, 50);
  EXPECT_EQ(stage_.plan(0).size(), 1u);
}

}  // namespace
}  // namespace foliot::overlap
