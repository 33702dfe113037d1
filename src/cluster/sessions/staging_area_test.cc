#include "cluster/sessions/staging_area.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace foliot {
namespace {

using ::testing::ElementsAre;

ModelInfo two_by_one() {
  ModelInfo model;
  model.inputs = {{"tokens", DataType::kFloat32, {-1, 2}, {"sequence", ""}}, {"mask", DataType::kUint8, {3}, {""}}};
  model.outputs = {{"sum", DataType::kFloat32, {1}, {""}}};
  model.buckets = {{{{"sequence", 4}}}, {{{"sequence", 8}}}};
  model.only().seed_exec.resize(2);
  return model;
}

TEST(StagingAreaTest, ARowIsAsLongAsItsBucketSays) {
  const RowLayout layout = row_layout(two_by_one(), BucketId(1));
  EXPECT_THAT(layout.inputs, ElementsAre(8 * 2 * 4, 3));
  EXPECT_THAT(layout.outputs, ElementsAre(4));
  EXPECT_EQ(layout.bytes(), 71u);
}

TEST(StagingAreaTest, RowsDoNotOverlap) {
  StagingArea area(1 << 16, 4);
  const RowLayout layout = row_layout(two_by_one(), BucketId(0));
  std::vector<std::span<std::byte>> spaces;
  for (const uint32_t rows : {3u, 1u}) {
    const auto batch = area.acquire(layout, rows);
    ASSERT_TRUE(batch);
    for (uint32_t row = 0; row < rows; ++row) {
      const PayloadHandle payload = StagingArea::payload(*batch, row);
      for (uint32_t i = 0; i < 2; ++i) spaces.push_back(area.input_space(payload, i));
      spaces.push_back(area.output(payload, 0));
    }
  }
  std::ranges::sort(spaces, {}, [](const auto& space) { return space.data(); });
  for (size_t i = 1; i < spaces.size(); ++i) {
    EXPECT_LE(spaces[i - 1].data() + spaces[i - 1].size(), spaces[i].data());
  }
}

TEST(StagingAreaTest, WhatIsWrittenIsRead) {
  StagingArea area(1 << 16, 4);
  const RowLayout layout = row_layout(two_by_one(), BucketId(0));
  const PayloadHandle payload = StagingArea::payload(*area.acquire(layout, 2), 1);
  area.input_space(payload, 1)[2] = std::byte{7};
  EXPECT_EQ(area.input(payload, 1)[2], std::byte{7});
  EXPECT_EQ(area.input(payload, 0).size(), 32u);
}

TEST(StagingAreaTest, HasSoManyBatchesAndNoMore) {
  StagingArea area(1 << 16, 2);
  const RowLayout layout = row_layout(two_by_one(), BucketId(0));
  const auto first = area.acquire(layout, 1);
  EXPECT_TRUE(area.acquire(layout, 1));
  EXPECT_FALSE(area.acquire(layout, 1));
  area.release(*first);
  EXPECT_TRUE(area.acquire(layout, 1));
}

TEST(StagingAreaTest, HasSoManyBytesAndNoMore) {
  const RowLayout layout{.inputs = {1000}, .outputs = {1000}};
  StagingArea area(8000, 100);
  const auto large = area.acquire(layout, 3);
  ASSERT_TRUE(large);
  EXPECT_FALSE(area.acquire(layout, 2));
  area.release(*large);
  EXPECT_TRUE(area.acquire(layout, 2));
}

}  // namespace
}  // namespace foliot
