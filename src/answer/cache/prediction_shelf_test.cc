#include "answer/cache/prediction_shelf.h"

#include <gtest/gtest.h>

#include <memory>

namespace foliot {
namespace {

PredictionKey key(uint64_t number) { return {.high = number, .low = number}; }

std::shared_ptr<const Prediction> prediction(size_t bytes) {
  auto made = std::make_shared<Prediction>();
  made->outputs.push_back({.spec = {}, .shape = {}, .padded = false, .bytes = std::string(bytes, 'x')});
  return made;
}

TEST(PredictionShelfTest, FindsWhatWasInserted) {
  PredictionShelf shelf(1 << 20);
  const auto made = prediction(10);
  shelf.insert(key(1), made);
  EXPECT_EQ(shelf.find(key(1)), made);
  EXPECT_EQ(shelf.find(key(2)), nullptr);
  shelf.insert(key(1), prediction(20));
  EXPECT_EQ(shelf.find(key(1)), made) << "the first stays";
  EXPECT_EQ(shelf.size(), 1u);
}

TEST(PredictionShelfTest, StaysWithinItsBytes) {
  PredictionShelf shelf(100'000);
  for (uint64_t i = 0; i < 100; ++i) {
    shelf.insert(key(i), prediction(10'000));
    EXPECT_LE(shelf.bytes(), 100'000u);
  }
  EXPECT_EQ(shelf.size() + shelf.evictions(), 100u);
  EXPECT_GE(shelf.size(), 8u);
}

TEST(PredictionShelfTest, EvictsInOrderWhatWasNotFoundSince) {
  PredictionShelf shelf(50'000);
  for (uint64_t i = 0; i < 4; ++i) shelf.insert(key(i), prediction(12'000));
  ASSERT_EQ(shelf.size(), 4u);
  EXPECT_NE(shelf.find(key(0)), nullptr);
  shelf.insert(key(4), prediction(12'000));
  EXPECT_EQ(shelf.find(key(1)), nullptr);
  EXPECT_NE(shelf.find(key(0)), nullptr);
  shelf.insert(key(5), prediction(12'000));
  shelf.insert(key(6), prediction(12'000));
  shelf.insert(key(7), prediction(12'000));
  EXPECT_NE(shelf.find(key(0)), nullptr) << "found again before it was its turn";
  EXPECT_EQ(shelf.find(key(4)), nullptr);
}

TEST(PredictionShelfTest, KeepsNothingThatTakesMoreThanHalf) {
  PredictionShelf shelf(10'000);
  shelf.insert(key(1), prediction(5'000));
  EXPECT_EQ(shelf.size(), 0u);
  PredictionShelf nothing(0);
  nothing.insert(key(1), prediction(1));
  EXPECT_EQ(nothing.size(), 0u);
}

}  // namespace
}  // namespace foliot
