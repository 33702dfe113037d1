#include "control/controller/overlap_predictor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "control/controller/rolling_duration_model.h"
#include "foundation/base/random.h"
#include "foundation/base/test_time.h"

namespace foliot {
namespace {

constexpr uint32_t kOperators = 8;

// All operators take as long; on one of two lanes half as long again as on both.
ProfiledModel profiled(const std::string& content, Duration whole) {
  ProfiledModel model{.name = content, .content = content, .operators = kOperators, .ends = {{{}, {}}}};
  for (uint32_t i = 1; i <= kOperators; ++i) {
    const auto end = static_cast<float>(whole.nanoseconds() * i / kOperators);
    model.ends[0][0].push_back(end);
    model.ends[0][1].push_back(end * 1.5F);
  }
  return model;
}

// Untrained: its corrections are anything.
OverlapPredictor untrained(uint64_t seed) {
  Random random(seed);
  return OverlapPredictor(2, {profiled("one", ms(8)), profiled("other", ms(4))},
                          Mlp(2 * OverlapPredictor::kFeatures, random));
}

// The first of those that expect the halves of both to slow each other down.
std::shared_ptr<const OverlapPredictor> slowing() {
  const std::vector<OverlapPredictor::Part> halves{{0, 0, {0, kOperators / 2}}, {1, 0, {0, kOperators / 2}}};
  for (uint64_t seed = 1;; ++seed) {
    auto made = std::make_shared<const OverlapPredictor>(untrained(seed));
    if (made->predict(halves) > ms(6)) return made;
  }
}

// A device of so many lanes that has the two, and one that was not profiled.
class Expectations {
 public:
  Expectations(std::shared_ptr<const OverlapPredictor> predictor, uint32_t lanes, uint32_t operators = kOperators)
      : operators_(operators), durations_(std::move(predictor)) {
    durations_.add_device(KindId(0));
    durations_.set_lane_count(DeviceId(0), lanes);
    for (uint32_t id = 0; id < 3; ++id) {
      ModelInfo info{.id = ModelId(id), .content = id == 0 ? "other" : id == 1 ? "one" : "another"};
      info.buckets.resize(1);
      info.only().seed_exec = {{ms(1)}};
      durations_.add_model(info, std::array{KindId(0)});
    }
  }
  ExecSegment half_of(uint32_t model, Duration alone) const {
    return {.shape = {.device = DeviceId(0), .model = ModelId(model)},
            .range = {0, operators_ / 2},
            .operator_count = operators_,
            .whole = alone * 2,
            .alone = alone};
  }
  Duration of(const std::vector<ExecSegment>& group) const {
    const std::array<std::span<const ExecSegment>, 1> groups{group};
    std::array<Duration, 1> durations;
    durations_.together(groups, durations);
    return durations[0];
  }

 private:
  uint32_t operators_;
  RollingDurationModel durations_;
};

TEST(OverlapPredictorTest, WhatIsNotKnownGainsNothing) {
  const auto made = slowing();
  const Expectations expected(made, 2);
  EXPECT_EQ(expected.of({expected.half_of(0, ms(4))}), ms(4)) << "alone";
  EXPECT_EQ(expected.of({expected.half_of(0, ms(4)), expected.half_of(2, ms(3))}), ms(7))
      << "one that was not profiled";
  EXPECT_EQ(expected.of({expected.half_of(0, ms(4)), expected.half_of(0, ms(3))}), ms(7)) << "twice";
  EXPECT_NE(expected.of({expected.half_of(0, ms(4)), expected.half_of(1, ms(3))}), ms(7));
  const Expectations of_other_lanes(made, 4);
  EXPECT_EQ(of_other_lanes.of({expected.half_of(0, ms(4)), expected.half_of(1, ms(3))}), ms(7));
  const Expectations of_other_operators(made, 2, kOperators + 1);
  EXPECT_EQ(of_other_operators.of({of_other_operators.half_of(0, ms(4)), of_other_operators.half_of(1, ms(3))}), ms(7));
}

// Corrections below 1 are cut off, others are not. The longest is half of `one`, on one lane.
TEST(OverlapPredictorTest, AGroupTakesAtLeastWhatItsLongestSegmentTakesOnItsLanes) {
  int at_least = 0, above = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Expectations expected(std::make_shared<OverlapPredictor>(untrained(seed)), 2);
    const Duration taken = expected.of({expected.half_of(0, ms(2)), expected.half_of(1, ms(4))});
    EXPECT_GE(taken, ms(6)) << seed;
    (taken == ms(6) ? at_least : above) += 1;
  }
  EXPECT_GT(at_least, 0);
  EXPECT_GT(above, 0);
}

// What takes twice as long alone as it did when it was profiled does so in a group, too.
TEST(OverlapPredictorTest, GroupsFollowWhatIsMeasuredAlone) {
  const Expectations expected(slowing(), 2);
  const Duration as_profiled = expected.of({expected.half_of(0, ms(2)), expected.half_of(1, ms(4))});
  EXPECT_GT(as_profiled, ms(6));
  EXPECT_EQ(expected.of({expected.half_of(0, ms(4)), expected.half_of(1, ms(8))}), as_profiled * 2);
}

TEST(OverlapPredictorTest, FeaturesAreOfEachModelInItsPlace) {
  const std::vector<ProfiledModel> models{profiled("one", ms(8)), profiled("other", ms(4))};
  OverlapPredictor::Features features;
  const std::vector<OverlapPredictor::Part> group{{1, 0, {2, 6}}, {0, 0, {4, OperatorRange::kEnd}}};
  OverlapPredictor::features(models, 2, group, features);
  EXPECT_EQ(OverlapPredictor::longest(models, 2, group), ms(6));
  const std::vector<float> wanted{1, 0.5F, 1, 0.24F, 1, 1, 0.25F, 0.75F, 0.12F, 0.5F};
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_FLOAT_EQ(features[i], wanted[i]) << i;
}

TEST(OverlapPredictorTest, AModelIsFoundByItsContent) {
  const OverlapPredictor made = untrained(1);
  ModelInfo info{.name = "other", .content = "one"};
  info.buckets.resize(1);
  EXPECT_EQ(made.find(info), 0u);
  info.buckets.resize(2);
  EXPECT_FALSE(made.find(info)) << "profiled in other buckets";
  EXPECT_FALSE(made.find({.name = "one", .buckets = {{}}}));
}

}  // namespace
}  // namespace foliot
