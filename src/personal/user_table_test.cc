#include "personal/user_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "personal/test_items.h"

namespace foliot {
namespace {

constexpr float kRidge = 0.7F;

class UserTableTest : public testing::Test {
 protected:
  // The next observations of a user, with ids that count up.
  void rate(UserTable& table, uint64_t user, size_t count) {
    std::vector<UserObservation> observations;
    for (size_t i = 0; i < count; ++i) {
      observations.push_back({++id_, 10 * random_.below(items_->items().size()), static_cast<float>(random_.normal())});
    }
    all_[user].insert(all_[user].end(), observations.begin(), observations.end());
    table.add(user, ++number_, observations);
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
  void expect_weights(UserTable& table, uint64_t user) {
    const std::span<const float> weights = table.weights(user);
    EXPECT_LT(relative_difference(weights, expected(user)), 1e-4) << "user " << user;
  }

  const TestFolder folder_{"user_table"};
  const std::shared_ptr<const ItemTable> items_ = drawn_items(folder_.path, 10, 50);
  Random random_{4};
  uint64_t id_ = 0;
  uint64_t number_ = 0;
  std::map<uint64_t, std::vector<UserObservation>> all_;
};

TEST_F(UserTableTest, WeightsFollowFromObservations) {
  UserTable table(items_, {.lambda = kRidge, .prior_is_mean = false});
  for (const size_t count : {1, 3, 8, 20, 1}) {
    rate(table, 1, count);
    expect_weights(table, 1);
  }
  EXPECT_EQ(table.observations(1).size(), 33u);
  EXPECT_EQ(table.builds(), 1u);  // the first; the others were updates
}

TEST_F(UserTableTest, UsersOutOfTheCacheAreBuiltAgain) {
  UserTable table(items_, {.lambda = kRidge, .prior_is_mean = false, .factors_max = 2});
  for (int turn = 0; turn < 3; ++turn) {
    for (uint64_t user = 1; user <= 5; ++user) {
      rate(table, user, 4);
      expect_weights(table, user);
    }
  }
  EXPECT_GE(table.builds(), 12u);
  // The weights are kept of all.
  const uint64_t builds = table.builds();
  for (uint64_t user = 1; user <= 5; ++user) expect_weights(table, user);
  EXPECT_EQ(table.builds(), builds);
}

TEST_F(UserTableTest, AUserThatIsReadKeepsItsMatrix) {
  UserTable table(items_, {.lambda = kRidge, .prior_is_mean = false, .factors_max = 3});
  rate(table, 1, 4);
  for (uint64_t user = 2; user <= 20; ++user) {
    rate(table, 1, 1);
    expect_weights(table, 1);
    rate(table, user, 4);
    expect_weights(table, user);
  }
  EXPECT_EQ(table.builds(), 20u);  // one of each
}

TEST_F(UserTableTest, MatricesAreCheckedAfterManyUpdates) {
  UserTable table(items_, {.lambda = kRidge, .prior_is_mean = false});
  for (int i = 0; i < 2500; ++i) {
    rate(table, 1, 1);
    table.weights(1);
  }
  EXPECT_EQ(table.builds(), 3u);
  EXPECT_EQ(table.corrections(), 0u);
  expect_weights(table, 1);
}

TEST_F(UserTableTest, ANewUserIsTheMeanOfAllOthers) {
  UserTable table(items_, {.lambda = kRidge});
  const std::span<const float> none = table.weights(9);
  EXPECT_EQ(*std::max_element(none.begin(), none.end()), 0);
  rate(table, 1, 5);
  const std::vector<float> first(table.weights(1).begin(), table.weights(1).end());
  rate(table, 2, 5);
  const std::vector<float> second(table.weights(2).begin(), table.weights(2).end());
  const std::span<const float> mean = table.weights(9);
  for (size_t i = 0; i < mean.size(); ++i) EXPECT_NEAR(mean[i], (first[i] + second[i]) / 2, 1e-6);
  // Its own weights are not part of its prior: a user that is alone has the prior zero.
  table.remove(2, ++number_);
  rate(table, 1, 1);
  expect_weights(table, 1);
  EXPECT_LT(relative_difference(table.weights(9), expected(1)), 1e-4);
}

TEST_F(UserTableTest, EachIdAndEachRecordCountsOnce) {
  UserTable table(items_, {});
  const std::vector<UserObservation> one = {{1, 10, 3}, {1, 20, 4}};
  table.add(5, 7, one);
  EXPECT_EQ(table.observations(5).size(), 1u);
  EXPECT_TRUE(table.has(5, 1));
  EXPECT_FALSE(table.has(6, 1));
  const std::vector<UserObservation> other = {{2, 10, 3}};
  table.add(5, 7, other);  // it is in the snapshot already
  EXPECT_EQ(table.observations(5).size(), 1u);
  table.remove(5, 6);
  EXPECT_EQ(table.observations(5).size(), 1u);
  table.remove(5, 8);
  EXPECT_EQ(table.observations(5).size(), 0u);
  EXPECT_EQ(table.users(), 0u);
}

TEST_F(UserTableTest, WhatIsStoredRestoresTheSame) {
  UserTable table(items_, {.lambda = kRidge});
  UserTable again(items_, {.lambda = kRidge});
  for (uint64_t user = 1; user <= 4; ++user) rate(table, user, 6);
  table.remove(2, ++number_);
  for (size_t place = 0; place < table.places(); ++place) {
    if (auto stored = table.stored(place)) again.restore(*std::move(stored));
  }
  EXPECT_EQ(again.users(), 3u);
  for (const uint64_t user : {1, 2, 3, 4}) {
    EXPECT_LT(relative_difference(again.weights(user), table.weights(user)), 1e-6) << user;
  }
  EXPECT_EQ(again.builds(), 0u);
}

}  // namespace
}  // namespace foliot
