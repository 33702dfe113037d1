#include "answer/personal/storage/weight_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "answer/personal/items/test_items.h"

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
  // The weights are kept of all, while what they follow from stays.
  for (uint64_t user = 1; user <= 5; ++user) expect_weights(table, user);
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

TEST_F(WeightTableTest, AUserThatIsAloneHasThePriorZero) {
  WeightTable table(users_, {.items = items_}, {.lambda = kRidge});
  const std::span<const float> none = table.weights(9);
  EXPECT_EQ(*std::max_element(none.begin(), none.end()), 0);
  rate(1, 5);
  expect_weights(table, 1);
  rate(2, 5);
  const std::vector<float> beside(table.weights(1).begin(), table.weights(1).end());
  EXPECT_GT(relative_difference(beside, expected(1)), 1e-2);
  remove(table, 2);
  expect_weights(table, 1);
}

// Solves A x = b by elimination with pivots: not what the table uses.
std::vector<double> solve_by_elimination(std::vector<std::vector<double>> a, std::vector<double> b) {
  const size_t n = b.size();
  for (size_t k = 0; k < n; ++k) {
    size_t pivot = k;
    for (size_t i = k + 1; i < n; ++i) pivot = std::abs(a[i][k]) > std::abs(a[pivot][k]) ? i : pivot;
    std::swap(a[k], a[pivot]);
    std::swap(b[k], b[pivot]);
    for (size_t i = k + 1; i < n; ++i) {
      const double factor = a[i][k] / a[k][k];
      for (size_t j = k; j < n; ++j) a[i][j] -= factor * a[k][j];
      b[i] -= factor * b[k];
    }
  }
  for (size_t k = n; k-- > 0;) {
    for (size_t j = k + 1; j < n; ++j) b[k] -= a[k][j] * b[j];
    b[k] /= a[k][k];
  }
  return b;
}

// Users whose weights vary around a mean, and what they must be learned as, written out.
class PriorTest : public WeightTableTest {
 protected:
  static constexpr size_t kFeatures = 10;
  // The observations of a user with these weights.
  std::vector<UserObservation> ratings(std::span<const double> weights, size_t count) {
    std::vector<UserObservation> all;
    for (size_t i = 0; i < count; ++i) {
      const size_t row = random_.below(items_->items().size());
      double value = 0.3 * random_.normal();
      for (size_t j = 0; j < kFeatures; ++j) value += weights[j] * items_->row(row)[j];
      all.push_back({++id_, items_->items()[row], static_cast<float>(value)});
    }
    return all;
  }
  void observe(uint64_t user, const std::vector<UserObservation>& some) {
    all_[user].insert(all_[user].end(), some.begin(), some.end());
    users_.add(user, ++number_, some);
  }
  std::vector<double> drawn_weights() {
    std::vector<double> weights(kFeatures);
    for (size_t j = 0; j < kFeatures; ++j) weights[j] = 3 + static_cast<double>(j) / 5 + 0.5 * random_.normal();
    return weights;
  }
  ValueRange range() const { return learns_range_ ? users_.population().range() : ValueRange::all(); }
  // A ridge of these observations: F'F and F'y are added with the factor that `share` gives of the trace of F'F.
  template <typename Share>
  void add(std::span<const UserObservation> some, const Share& share) {
    double trace = 0;
    for (const UserObservation& one : some) {
      for (const float feature : items_->row(*items_->find(one.item))) trace += static_cast<double>(feature) * feature;
    }
    for (const UserObservation& one : some) {
      const std::span<const float> row = items_->row(*items_->find(one.item));
      for (size_t i = 0; i < kFeatures; ++i) {
        right_[i] += share(trace) * row[i] * one.value;
        for (size_t j = 0; j < kFeatures; ++j) left_[i][j] += share(trace) * row[i] * row[j];
      }
    }
  }
  void begin(double ridge, std::span<const double> prior) {
    left_.assign(kFeatures, std::vector<double>(kFeatures));
    right_.assign(kFeatures, 0);
    for (size_t j = 0; j < kFeatures; ++j) {
      left_[j][j] = ridge;
      right_[j] = prior.empty() ? 0 : ridge * prior[j];
    }
  }
  std::vector<double> expected_prior() {
    begin(PooledPrior::kOwnShare, {});
    for (const auto& [user, all] : all_) {
      size_t count = 1;
      while (2 * count <= std::min(all.size(), Population::kObservationsMax)) count *= 2;
      std::vector<UserObservation> first(all.begin(), all.begin() + static_cast<ptrdiff_t>(count));
      std::erase_if(first, [this](const UserObservation& one) { return !range().contains(one.value); });
      add(first, [](double trace) { return 1 / (kRidge + trace); });
    }
    return solve_by_elimination(left_, right_);
  }
  std::vector<double> expected_weights(uint64_t user, std::span<const double> prior) {
    begin(kRidge, prior);
    std::vector<UserObservation> clipped = all_[user];
    for (UserObservation& one : clipped) one.value = range().clip(one.value);
    add(clipped, [](double) { return 1.0; });
    return solve_by_elimination(left_, right_);
  }
  static void expect_same(std::span<const float> weights, std::span<const double> expected) {
    for (size_t j = 0; j < kFeatures; ++j)
      ASSERT_NEAR(weights[j], expected[j], 1e-6 * std::max(1.0, std::abs(expected[j])));
  }
  std::vector<float> weights(WeightTable& table, uint64_t user) {
    return {table.weights(user).begin(), table.weights(user).end()};
  }
  static constexpr uint64_t kNew = 1'000'000;

  bool learns_range_ = true;
  std::vector<std::vector<double>> left_;
  std::vector<double> right_;
};

TEST_F(PriorTest, WeightsAreThoseOfTheNormalEquations) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    random_ = Random(seed);
    users_ = ObservationTable();
    all_.clear();
    WeightTable table(users_, {.items = items_}, {.lambda = kRidge, .factors_max = 7});
    const uint64_t count = 2 + random_.below(40);
    for (int step = 0; step < 200; ++step) {
      const uint64_t user = random_.below(count);
      if (random_.below(20) == 0 && users_.find(user)) {
        remove(table, user);
        all_.erase(user);
        continue;
      }
      observe(user, ratings(drawn_weights(), 1 + random_.below(8)));
      if (random_.below(3) == 0) table.weights(random_.below(count));
      if (step % 10 != 9 || all_.size() < 2) continue;
      const std::vector<double> prior = expected_prior();
      expect_same(weights(table, kNew), prior);
      for (const auto& [each, all] : all_) expect_same(weights(table, each), expected_weights(each, prior));
    }
  }
}

TEST_F(PriorTest, WeightsDoNotDependOnWhatWasReadWhen) {
  WeightTable read_often(users_, {.items = items_}, {.lambda = kRidge});
  WeightTable read_once(users_, {.items = items_}, {.lambda = kRidge, .factors_max = 1});
  for (int step = 0; step < 300; ++step) {
    observe(random_.below(30), ratings(drawn_weights(), 1 + random_.below(3)));
    read_often.weights(random_.below(31));
  }
  for (uint64_t user = 0; user <= 30; ++user) {
    const std::vector<float> often = weights(read_often, user);
    const std::vector<float> once = weights(read_once, user);
    for (size_t j = 0; j < kFeatures; ++j) EXPECT_NEAR(often[j], once[j], 1e-6 * std::abs(once[j])) << user;
  }
}

// Mean squared errors of what others and new users are predicted, with hostile users and without.
class HostileUsersTest : public PriorTest, public testing::WithParamInterface<uint64_t> {
 protected:
  struct Errors {
    double of_others = 0;
    double of_new_ones = 0;
  };
  static constexpr uint64_t kHonest = 80;
  Errors errors(WeightTable& table) {
    Random random(77);
    Errors errors;
    for (uint64_t user = 0; user < 2 * kHonest; ++user) {
      const bool is_new = user >= kHonest;
      const std::vector<float> known = weights(table, is_new ? kNew : user);
      for (int i = 0; i < 20; ++i) {
        const std::span<const float> row = items_->row(random.below(items_->items().size()));
        double error = 0;
        for (size_t j = 0; j < kFeatures; ++j) error += (known[j] - hidden_[user][j]) * row[j];
        (is_new ? errors.of_new_ones : errors.of_others) += error * error / (kHonest * 20);
      }
    }
    return errors;
  }
  std::vector<std::vector<double>> hidden_;
};

TEST_P(HostileUsersTest, OthersArePredictedAsWithoutThem) {
  random_ = Random(GetParam());
  for (uint64_t user = 0; user < 2 * kHonest; ++user) hidden_.push_back(drawn_weights());
  WeightTable table(users_, {.items = items_}, {.lambda = kRidge});
  for (uint64_t user = 0; user < kHonest; ++user) observe(user, ratings(hidden_[user], 40));
  const Errors without = errors(table);
  const std::vector<float> before = weights(table, kNew);
  for (uint64_t hostile = 0; hostile < 10; ++hostile) {
    const float value = std::vector<float>{1e9F, -1e9F, 1e6F, 1000, -3e38F}[(GetParam() + hostile) % 5];
    std::vector<UserObservation> many;
    for (size_t i = 0; i < (hostile == 0 ? 10'000U : 40U); ++i) {
      many.push_back({++id_, 10 * random_.below(items_->items().size()), value});
    }
    observe(500 + hostile, many);
    table.weights(500 + hostile);
    // They go on.
    for (uint64_t user = 0; user < kHonest; ++user) observe(user, ratings(hidden_[user], 1));
    const Errors with = errors(table);
    EXPECT_LE(with.of_others, 1.05 * without.of_others) << hostile + 1 << " hostile users";
    EXPECT_LE(with.of_new_ones, 1.05 * without.of_new_ones) << hostile + 1 << " hostile users";
  }
  for (uint64_t hostile = 0; hostile < 10; ++hostile) remove(table, 500 + hostile);
  for (uint64_t hostile = 0; hostile < 10; ++hostile) all_.erase(500 + hostile);
  expect_same(weights(table, kNew), expected_prior());
  EXPECT_LT(relative_difference(weights(table, kNew), before), 0.01) << "forgotten";
}

INSTANTIATE_TEST_SUITE_P(Seeds, HostileUsersTest, testing::Range<uint64_t>(1, 6));

// Of three users one alone makes the range, so that its values count until there are more.
TEST_F(PriorTest, HostileUsersThatCameFirstLeaveNothing) {
  for (const float value : {1e9F, -1e18F, 3e38F}) {
    SCOPED_TRACE(value);
    users_ = ObservationTable();
    all_.clear();
    WeightTable table(users_, {.items = items_}, {.lambda = kRidge});
    observe(1, ratings(drawn_weights(), 10));
    std::vector<UserObservation> hostile = ratings(drawn_weights(), 10);
    for (UserObservation& one : hostile) one.value = value;
    observe(500, hostile);
    table.weights(1);
    for (uint64_t user = 2; user < 40; ++user) {
      observe(user, ratings(drawn_weights(), 10));
      table.weights(user);
    }
    const std::vector<double> prior = expected_prior();
    expect_same(weights(table, kNew), prior);
    for (uint64_t user = 1; user < 40; ++user) expect_same(weights(table, user), expected_weights(user, prior));
  }
}

TEST_F(PriorTest, ARangeThatWasAskedForIsNotNarrowed) {
  WeightTable learned(users_, {.items = items_}, {.lambda = kRidge});
  WeightTable asked(users_, {.items = items_}, {.lambda = kRidge, .learns_range = false});
  for (uint64_t user = 0; user < 40; ++user) observe(user, ratings(drawn_weights(), 10));
  const std::vector<UserObservation> rare = {{++id_, 10, 1000}};
  observe(3, rare);
  learns_range_ = false;
  expect_same(weights(asked, 3), expected_weights(3, expected_prior()));
  EXPECT_GT(relative_difference(weights(learned, 3), weights(asked, 3)), 0.1);
}

}  // namespace
}  // namespace foliot
