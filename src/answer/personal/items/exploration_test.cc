#include "answer/personal/items/exploration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "answer/personal/items/test_items.h"
#include "answer/personal/weights/cholesky.h"

namespace foliot {
namespace {

using ::testing::ElementsAre;

class ExplorationTest : public testing::Test {
 protected:
  // All items by their score.
  std::vector<ScoredItem> all_sorted() {
    std::vector<ScoredItem> all;
    for (size_t i = 0; i < table_->items().size(); ++i) {
      float score = 0;
      cholesky<float>().multiply(table_->row(i).data(), 1, table_->width(), weights_.data(), &score);
      all.push_back({.item = table_->items()[i], .score = score});
    }
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
    return all;
  }

  const TestFolder folder_{"exploration"};
  const std::shared_ptr<const ItemTable> table_ = drawn_items(folder_.path, 12, 1000);
  const std::vector<float> weights_ = {1, -1, 2, 0, 0.5, 3, 0, 1, -2, 1, 1, 1, 0, 0, 0, 0};
};

TEST_F(ExplorationTest, TopKIsExact) {
  const std::vector<ScoredItem> all = all_sorted();
  for (const size_t k : {1, 7, 1000, 2000}) {
    const std::vector<ScoredItem> best = top_k(table_->all(), weights_, k);
    ASSERT_EQ(best.size(), std::min<size_t>(k, 1000));
    for (size_t i = 0; i < best.size(); ++i) EXPECT_EQ(best[i].item, all[i].item);
  }
  const std::vector<size_t> candidates = {3, 500, 999};
  EXPECT_EQ(top_k(table_->all(), weights_, 5, &candidates).size(), 3u);
}

TEST_F(ExplorationTest, AmongEqualsTheLowerIdIsFirst) {
  const std::vector<float> zero(table_->width());
  std::vector<uint64_t> items;
  for (const ScoredItem& item : top_k(table_->all(), zero, 3)) items.push_back(item.item);
  EXPECT_THAT(items, ElementsAre(0, 10, 20));
}

TEST_F(ExplorationTest, ThePoolIsDrawnUniformlyWithItsProbability) {
  const Exploration exploration{.kind = ExplorationKind::kGreedy, .pool = 0.1};
  const std::vector<size_t> candidates = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  Random random(3);
  std::map<uint64_t, int> drawn;
  int count = 0;
  constexpr int kQueries = 20000;
  for (int i = 0; i < kQueries; ++i) {
    const std::vector<ScoredItem> shown =
        explore(exploration, table_->all(), weights_, nullptr, 2, &candidates, random);
    ASSERT_EQ(shown.size(), 2u);
    EXPECT_NE(shown[0].item, shown[1].item);
    for (const ScoredItem& item : shown) {
      if (!item.is_drawn) continue;
      ++drawn[item.item];
      ++count;
      EXPECT_GE(item.probability, 0.01);
      EXPECT_LE(item.probability, 0.1 / 9);
    }
  }
  EXPECT_NEAR(count, 0.1 * 2 * kQueries, 200);
  for (const auto& [item, times] : drawn) EXPECT_NEAR(times, count / 10, 80) << item;
}

TEST_F(ExplorationTest, WithoutExplorationTheBestAreShown) {
  const Exploration exploration{.kind = ExplorationKind::kGreedy, .pool = 0};
  Random random(3);
  const std::vector<ScoredItem> shown = explore(exploration, table_->all(), weights_, nullptr, 20, nullptr, random);
  const std::vector<ScoredItem> all = all_sorted();
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(shown[i].item, all[i].item);
}

// What a user has rated often is known: linucb and thompson leave it, greedy does not.
TEST_F(ExplorationTest, UncertainItemsAreShown) {
  UserWeights factor(12, 1);
  const std::vector<float> zero(table_->width());
  const std::vector<float> values(300, 0);
  std::vector<float> rows;
  for (int i = 0; i < 300; ++i) rows.insert(rows.end(), table_->row(0).begin(), table_->row(0).end());
  ASSERT_TRUE(factor.add(rows, values));
  Random random(3);
  const std::vector<size_t> candidates = {0, 1};
  for (const ExplorationKind kind : {ExplorationKind::kLinucb, ExplorationKind::kThompson}) {
    std::set<uint64_t> first;
    for (int i = 0; i < 50; ++i) {
      first.insert(explore({.kind = kind, .pool = 0}, table_->all(), zero, &factor, 1, &candidates, random)[0].item);
    }
    EXPECT_TRUE(first.contains(10));
  }
  EXPECT_EQ(
      explore({.kind = ExplorationKind::kGreedy, .pool = 0}, table_->all(), zero, nullptr, 1, &candidates, random)[0]
          .item,
      0u);
  // Every place is drawn.
  std::set<uint64_t> drawn;
  for (int i = 0; i < 50; ++i) {
    const Exploration epsilon{.kind = ExplorationKind::kEpsilon, .epsilon = 1, .pool = 0};
    const ScoredItem shown = explore(epsilon, table_->all(), zero, nullptr, 1, &candidates, random)[0];
    EXPECT_FALSE(shown.is_drawn);  // the pool is apart from it
    drawn.insert(shown.item);
  }
  EXPECT_EQ(drawn.size(), 2u);
  EXPECT_EQ(exploration_named("linucb"), ExplorationKind::kLinucb);
  EXPECT_FALSE(exploration_named("lucky").has_value());
}

}  // namespace
}  // namespace foliot
