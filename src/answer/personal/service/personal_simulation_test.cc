// Users with hidden weights answer what they are shown: exploration, the validation pool and drift, as
// the issue asks for them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "answer/personal/items/exploration.h"
#include "answer/personal/items/test_items.h"
#include "answer/personal/storage/weight_table.h"
#include "answer/personal/weights/cholesky.h"
#include "answer/personal/weights/drift_detector.h"
#include "answer/personal/weights/observation_table.h"

namespace foliot {
namespace {

constexpr size_t kFeatures = 8;

// The Top 40: items that all users like a little. 160 others stand for tastes of which each user likes some much more.
std::shared_ptr<const ItemTable> top40_items(const std::filesystem::path& folder) {
  Random random(40);
  std::vector<uint64_t> items;
  std::vector<float> rows;
  for (uint64_t item = 0; item < 200; ++item) {
    items.push_back(item);
    for (size_t j = 0; j < kFeatures; ++j) {
      const bool is_of_top40 = item < 40;
      const bool has_feature = is_of_top40 == (j < 4);
      const float popular = is_of_top40 && j == 0 ? 1 : 0;
      rows.push_back(has_feature ? popular + 0.5F * static_cast<float>(random.normal()) : 0);
    }
  }
  FOLIOT_CHECK(ItemTable::write(folder / "items", kFeatures, items, rows).ok());
  return ItemTable::open(folder / "items").value();
}

class Simulation {
 public:
  Simulation(std::shared_ptr<const ItemTable> items, const Exploration& exploration, uint64_t users)
      : items_(std::move(items)), exploration_(exploration), table_(users_, {.items = items_}, {}) {
    for (uint64_t user = 0; user < users; ++user) {
      std::vector<float> hidden(items_->width());
      for (size_t j = 0; j < kFeatures; ++j) {
        hidden[j] = j == 0 ? 0.5F : (j < 4 ? 0.1F : 1.0F) * static_cast<float>(random_.normal());
      }
      hidden_.push_back(std::move(hidden));
    }
  }
  double product(std::span<const float> weights, size_t place) const {
    float product = 0;
    cholesky<float>().multiply(items_->row(place).data(), 1, items_->width(), weights.data(), &product);
    return product;
  }
  // Shows one item to a user, and learns what it makes of it.
  void step(uint64_t user) {
    const std::span<const float> known = table_.weights(user);
    const std::vector<float> weights(known.begin(), known.end());
    const UserWeights* const factor = exploration_.needs_factor() ? &table_.factor(user) : nullptr;
    const ScoredItem shown = explore(exploration_, items_->all(), weights, factor, 1, nullptr, random_).front();
    const size_t place = *items_->find(shown.item);
    const double value = product(hidden_[user], place);
    double best = value;
    for (size_t other = 0; other < items_->items().size(); ++other) {
      best = std::max(best, product(hidden_[user], other));
    }
    regret += best - value;
    const double observed = value + 0.3 * random_.normal();
    const double error = product(weights, place) - observed;
    if (shown.is_drawn) {
      pool_losses.push_back(error * error);
      double sum = 0.09;  // of the noise
      for (size_t other = 0; other < items_->items().size(); ++other) {
        const double difference = product(weights, other) - product(hidden_[user], other);
        sum += difference * difference / static_cast<double>(items_->items().size());
      }
      expected_losses.push_back(sum);
    } else {
      shown_loss.record(error * error);
    }
    ++number_;
    const std::vector<UserObservation> one = {{number_, shown.item, static_cast<float>(observed)}};
    users_.add(user, number_, one);
  }

  double regret = 0;
  std::vector<double> pool_losses;      // on the places of the pool
  std::vector<double> expected_losses;  // of any item, drawn uniformly, at the same moments
  RunningLoss shown_loss;

 private:
  const std::shared_ptr<const ItemTable> items_;
  const Exploration exploration_;
  Random random_{7};
  ObservationTable users_;
  WeightTable table_;
  std::vector<std::vector<float>> hidden_;
  uint64_t number_ = 0;
};

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

TEST(PersonalSimulationTest, ThompsonLeavesTheTop40) {
  const TestFolder folder("personal_simulation");
  const auto items = top40_items(folder.path);
  constexpr uint64_t kPeople = 50;
  std::map<ExplorationKind, double> regret;
  for (const auto kind : {ExplorationKind::kGreedy, ExplorationKind::kThompson, ExplorationKind::kLinucb}) {
    Simulation simulation(items, {.kind = kind, .pool = 0.01}, kPeople);
    for (int turn = 0; turn < 100; ++turn) {
      for (uint64_t user = 0; user < kPeople; ++user) simulation.step(user);
    }
    regret[kind] = simulation.regret;
  }
  RecordProperty("greedy", std::to_string(regret[ExplorationKind::kGreedy]));
  RecordProperty("thompson", std::to_string(regret[ExplorationKind::kThompson]));
  RecordProperty("linucb", std::to_string(regret[ExplorationKind::kLinucb]));
  EXPECT_LT(regret[ExplorationKind::kThompson], 0.5 * regret[ExplorationKind::kGreedy]);
  EXPECT_LT(regret[ExplorationKind::kLinucb], 0.5 * regret[ExplorationKind::kGreedy]);
}

// The loss on the pool is that of any item, however few items the model shows otherwise.
TEST(PersonalSimulationTest, ThePoolIsUnbiased) {
  const TestFolder folder("personal_simulation");
  Simulation simulation(top40_items(folder.path), {.kind = ExplorationKind::kGreedy, .pool = 0.05}, 50);
  for (int turn = 0; turn < 300; ++turn) {
    for (uint64_t user = 0; user < 50; ++user) simulation.step(user);
  }
  ASSERT_GT(simulation.pool_losses.size(), 600u);
  const double pool = mean(simulation.pool_losses);
  const double expected = mean(simulation.expected_losses);
  double squares = 0;
  for (const double loss : simulation.pool_losses) squares += (loss - pool) * (loss - pool);
  const double standard_error = std::sqrt(squares) / static_cast<double>(simulation.pool_losses.size());
  RecordProperty("pool", std::to_string(pool));
  RecordProperty("expected", std::to_string(expected));
  RecordProperty("shown", std::to_string(simulation.shown_loss.mean()));
  EXPECT_NEAR(pool, expected, 3 * standard_error);
  EXPECT_LT(simulation.shown_loss.mean(), 0.8 * expected);  // what is shown is better known
}

// Users learn from random items; at some moment half of the items become others.
TEST(PersonalSimulationTest, DriftOfItemsIsFound) {
  const TestFolder folder("personal_simulation");
  const auto items = drawn_items(folder.path, kFeatures, 500);
  constexpr uint64_t kPeople = 1000;
  constexpr uint64_t kSteady = 150'000;
  Random random(3);
  std::vector<std::vector<float>> hidden(kPeople, std::vector<float>(items->width()));
  for (auto& weights : hidden) {
    for (size_t j = 0; j < kFeatures; ++j) weights[j] = static_cast<float>(random.normal());
  }
  ObservationTable users;
  WeightTable table(users, {.items = items}, {});
  DriftDetector detector;
  uint64_t found_after = 0;
  for (uint64_t number = 1; number <= kSteady + 5000; ++number) {
    const bool is_steady = number <= kSteady;
    const uint64_t user = random.below(kPeople);
    const size_t place = random.below(500);
    const size_t real = is_steady || place % 2 == 0 ? place : (place + 1) % 500;
    float value = 0;
    float prediction = 0;
    cholesky<float>().multiply(items->row(real).data(), 1, items->width(), hidden[user].data(), &value);
    cholesky<float>().multiply(items->row(place).data(), 1, items->width(), table.weights(user).data(), &prediction);
    value += 0.5F * static_cast<float>(random.normal());
    const double error = prediction - value;
    detector.record(users.observations(user).size(), error * error);
    ASSERT_FALSE(is_steady && detector.is_found()) << number;
    if (detector.is_found() && found_after == 0) found_after = number - kSteady;
    const std::vector<UserObservation> one = {{number, items->items()[place], value}};
    users.add(user, number, one);
  }
  RecordProperty("found_after", std::to_string(found_after));
  EXPECT_TRUE(detector.is_found());
}

}  // namespace
}  // namespace foliot
