#include "personal/weight_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "personal/test_items.h"

namespace foliot {
namespace {

constexpr float kRidge = 0.7F;

class WeightTableTest : public testing::Test {
 protected:
  // The next observations of a user, with ids that count up.
  void rate(uint64_t user, size_t count) {
    std::vector<UserObservation> observations;
    for (size_t i = 0; i < count; ++i) {
      observations.push_back({++id_, 10 * random_.below(items_->items().size()), static_cast<float>(random_.normal())});
    }
    all_[user].insert(all_[user].end(), observations.begin(), observations.end());
    users_.add(user, ++number_, observations);
  }
  // The weights of a user that alone has observations, from scratch.
  std::vector<float> expected(uint64_t user) {
    std::vector<float> rows;
    std::vector<float> values;
    for (const UserObservation& observation : all_[user]) {
      const std::span<const float> row = items_->row(*items_->find(observation.item));
      rows.insert(rows.end(), row.begin(), row.end());
      values.push_back(observation.value);
    }
    std::vector<float> weights(items_->width());
    const std::vector<float> zero(items_->width());
    solve_in_double(items_->features(), kRidge, rows, values, zero, weights);
    return weights;
  }
  void remove(WeightTable& table, uint64_t user) { table.remove(*users_.remove(user, ++number_)); }
  void expect_weights(WeightTable& table, uint64_t user) {
    const std::span<const float> weights = table.weights(user);
    EXPECT_LT(relative_difference(weights, expected(user)), 1e-4) << "user " << user;
  }

  const TestFolder folder_{"weight_table"};
  const std::shared_ptr<const ItemTable> items_ = drawn_items(folder_.path, 10, 50);
  Random random_{4};
  ObservationTable users_;
  uint64_t id_ = 0;
  uint64_t number_ = 0;
  std::map<uint64_t, std::vector<UserObservation>> all_;
};

TEST_F(WeightTableTest, WeightsFollowFromObservations) {
  WeightTable table(users_, {.items = items_}, {.lambda = kRidge, .prior_is_mean = false});
  for (const size_t count : {1, 3, 8, 20, 1}) {
    rate(1, count);
    expect_weights(table, 1);
  }
  EXPECT_EQ(users_.observations(1).size(), 33u);
  EXPECT_EQ(table.builds(), 1u);  // the first; the others were updates
}

TEST_F(WeightTableTest, UsersOutOfTheCacheAreBuiltAgain) {
  WeightTable table(users_, {.items = items_}, {.lambda = kRidge, .prior_is_mean = false, .factors_max = 2});
  for (int turn = 0; turn < 3; ++turn) {
    for (uint64_t user = 1; user <= 5; ++user) {
      rate(user, 4);
      expect_weights(table, user);
    }
  }
  EXPECT_GE(table.builds(), 12u);
  // The weights are kept of all.
  const uint64_t builds = table.builds();
  for (uint64_t user = 1; user <= 5; ++user) expect_weights(table, user);
  EXPECT_EQ(table.builds(), builds);
}

TEST_F(WeightTableTest, AUserThatIsReadKeepsItsMatrix) {
  WeightTable table(users_, {.items = items_}, {.lambda = kRidge, .prior_is_mean = false, .factors_max = 3});
  rate(1, 4);
  for (uint64_t user = 2; user <= 20; ++user) {
    rate(1, 1);
    expect_weights(table, 1);
    rate(user, 4);
    expect_weights(table, user);
  }
  EXPECT_EQ(table.builds(), 20u);  // one of each
}

TEST_F(WeightTableTest, MatricesAreCheckedAfterManyUpdates) {
  WeightTable table(users_, {.items = items_}, {.lambda = kRidge, .prior_is_mean = false});
  for (int i = 0; i < 2500; ++i) {
    rate(1, 1);
    table.weights(1);
  }
  EXPECT_EQ(table.builds(), 3u);
  EXPECT_EQ(table.corrections(), 0u);
  expect_weights(table, 1);
}

TEST_F(WeightTableTest, ANewUserIsTheMeanOfAllOthers) {
  WeightTable table(users_, {.items = items_}, {.lambda = kRidge});
  const std::span<const float> none = table.weights(9);
  EXPECT_EQ(*std::max_element(none.begin(), none.end()), 0);
  rate(1, 5);
  const std::vector<float> first(table.weights(1).begin(), table.weights(1).end());
  rate(2, 5);
  const std::vector<float> second(table.weights(2).begin(), table.weights(2).end());
  const std::span<const float> mean = table.weights(9);
  for (size_t i = 0; i < mean.size(); ++i) EXPECT_NEAR(mean[i], (first[i] + second[i]) / 2, 1e-6);
  // Its own weights are not part of its prior: a user that is alone has the prior zero.
  remove(table, 2);
  rate(1, 1);
  expect_weights(table, 1);
  EXPECT_LT(relative_difference(table.weights(9), expected(1)), 1e-4);
}

TEST_F(WeightTableTest, WhatIsStoredRestoresTheSame) {
  WeightTable table(users_, {.items = items_}, {.lambda = kRidge});
  for (uint64_t user = 1; user <= 4; ++user) rate(user, 6);
  remove(table, 2);
  WeightTable again(users_, {.items = items_}, {.lambda = kRidge});
  for (const uint64_t user : {1, 3, 4}) {
    const std::span<const float> weights = table.weights(user);
    again.restore(*users_.find(user), {weights.begin(), weights.end()});
  }
  for (const uint64_t user : {1, 2, 3, 4}) {
    EXPECT_LT(relative_difference(again.weights(user), table.weights(user)), 1e-6) << user;
  }
  EXPECT_EQ(again.builds(), 0u);
}

}  // namespace
}  // namespace foliot
