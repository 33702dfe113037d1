#include "engine/worker/model_table.h"

#include <gtest/gtest.h>

#include <optional>

namespace foliot {
namespace {

TEST(WorkerModelTest, HasAPlanForEachBucketAndBatchSizeAndNoOther) {
  const WorkerModel model{.batch_sizes = {1, 4}, .io_bytes = {{1, 1}, {4, 4}, {2, 2}, {8, 8}}};
  EXPECT_EQ(model.plan(BucketId(0), 1), 0u);
  EXPECT_EQ(model.plan(BucketId(0), 4), 1u);
  EXPECT_EQ(model.plan(BucketId(1), 1), 2u);
  EXPECT_EQ(model.plan(BucketId(1), 4), 3u);
  EXPECT_EQ(model.plan(BucketId(0), 2), std::nullopt);
  EXPECT_EQ(model.plan(BucketId(2), 1), std::nullopt);
  EXPECT_EQ(model.plan(BucketId(2), 4), std::nullopt);
}

TEST(ModelTableTest, NothingIsUnloadedWhileAnyLaneExecutesIt) {
  ModelTable models(2);
  const ModelId id(1);
  models.add({.id = id});
  EXPECT_FALSE(models.begin_exec(id));
  models.set_resident(id);
  EXPECT_TRUE(models.begin_exec(id));
  EXPECT_TRUE(models.begin_exec(id));
  EXPECT_FALSE(models.begin_unload(id));
  models.end_exec(id);
  EXPECT_FALSE(models.begin_unload(id));
  EXPECT_TRUE(models.resident(id));
  models.end_exec(id);
  EXPECT_TRUE(models.begin_unload(id));
  EXPECT_FALSE(models.begin_exec(id));
  models.remove(id);
}

}  // namespace
}  // namespace foliot
