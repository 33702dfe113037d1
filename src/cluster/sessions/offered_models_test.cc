#include "cluster/sessions/offered_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class OfferedModelsTest : public ::testing::Test {
 protected:
  std::optional<ModelId> add(uint32_t id, const std::string& name, const std::string& version = "1") {
    ModelInfo info{.id = ModelId(id), .name = name, .version = version};
    info.buckets.emplace_back();
    info.inputs.push_back({.name = "x", .type = DataType::kFloat32, .shape = {2}});
    return models_.add(std::make_shared<const ModelInfo>(info));
  }
  bool remove(uint32_t id) {
    return models_.remove(ModelId(id), [this, id] { gone_.push_back(id); });
  }
  std::vector<uint32_t> listed() {
    std::vector<uint32_t> ids;
    for (const ModelId id : models_.begin()) ids.push_back(id.value());
    return ids;
  }
  std::vector<uint32_t> strays() const {
    std::vector<uint32_t> ids;
    for (const ModelId id : models_.strays()) ids.push_back(id.value());
    return ids;
  }
  void welcome(const std::vector<ModelId>& names) { EXPECT_TRUE(models_.welcome(names).ok()); }
  bool name(uint32_t id, uint32_t name) { return models_.name(ModelId(id), ModelId(name)).ok(); }
  bool release(uint32_t id) { return models_.release(ModelId(id)).ok(); }

  OfferedModels models_;
  std::vector<uint32_t> gone_;
};

TEST_F(OfferedModelsTest, AreKnownByTheirNames) {
  add(0, "a");
  add(1, "b");
  EXPECT_THAT(listed(), ElementsAre(0, 1));
  EXPECT_EQ(models_.named(ModelId(7)), std::nullopt);
  welcome({ModelId(7), kUnnamed});
  EXPECT_EQ(models_.named(ModelId(7)), ModelId(0));
  EXPECT_FALSE(models_.is_named(ModelId(1)));
  EXPECT_TRUE(name(1, 9));
  EXPECT_EQ(models_.named(ModelId(9)), ModelId(1));
  EXPECT_EQ(models_.layout(ModelId(0), BucketId(0))->inputs.size(), 1u);
  EXPECT_EQ(models_.layout(ModelId(0), BucketId(1)), nullptr);
}

TEST_F(OfferedModelsTest, ANewVersionWithdrawsTheOldOneWhichIsRunUntilItIsReleased) {
  EXPECT_EQ(add(0, "a"), std::nullopt);
  listed();
  welcome({ModelId(7)});
  EXPECT_EQ(add(1, "a", "2"), ModelId(0));
  EXPECT_FALSE(remove(0));  // it was withdrawn above
  EXPECT_EQ(models_.named(ModelId(7)), ModelId(0));
  EXPECT_THAT(gone_, IsEmpty());
  EXPECT_TRUE(name(1, 8));
  EXPECT_TRUE(release(0));
  EXPECT_THAT(gone_, ElementsAre(0));
  EXPECT_EQ(models_.named(ModelId(7)), std::nullopt);
}

TEST_F(OfferedModelsTest, WhatIsReleasedFirstIsForgottenWhenItIsRemoved) {
  add(0, "a");
  listed();
  welcome({ModelId(7)});
  EXPECT_TRUE(release(0));
  EXPECT_THAT(gone_, IsEmpty());
  EXPECT_FALSE(remove(0));  // there is nothing to withdraw any more
  EXPECT_THAT(gone_, ElementsAre(0));
}

TEST_F(OfferedModelsTest, WhatIsRemovedIsWithdrawnAndForgottenOnRelease) {
  add(0, "a");
  add(1, "b");
  listed();
  welcome({ModelId(7), ModelId(8)});
  EXPECT_TRUE(remove(1));
  EXPECT_THAT(gone_, IsEmpty());
  EXPECT_TRUE(release(1));
  EXPECT_THAT(gone_, ElementsAre(1));
}

TEST_F(OfferedModelsTest, ReregistrationListsTheLastNamedFirstAndNoWithdrawnOnes) {
  add(0, "a");
  add(1, "b");
  listed();
  welcome({ModelId(7), ModelId(8)});
  add(2, "a", "2");
  name(2, 9);
  add(3, "c");
  remove(0);
  models_.lose_names();
  EXPECT_EQ(models_.named(ModelId(8)), std::nullopt);
  EXPECT_THAT(strays(), ElementsAre(0));
  EXPECT_THAT(listed(), ElementsAre(2, 1, 3));
  EXPECT_THAT(gone_, ElementsAre(0));
}

TEST_F(OfferedModelsTest, AListEndsTheNamesOfTheSessionBefore) {
  add(0, "a");
  listed();
  welcome({ModelId(7)});
  listed();
  EXPECT_EQ(models_.named(ModelId(7)), std::nullopt);
  EXPECT_FALSE(models_.is_named(ModelId(0)));
  welcome({ModelId(7)});
  EXPECT_EQ(models_.named(ModelId(7)), ModelId(0));
}

TEST_F(OfferedModelsTest, PagesMayNotHoldWhatTheControllerHasNoNameFor) {
  add(0, "a");
  add(1, "b");
  listed();
  EXPECT_THAT(strays(), IsEmpty());
  welcome({ModelId(7), kUnnamed});
  EXPECT_THAT(strays(), ElementsAre(1));
  name(1, 8);
  EXPECT_THAT(strays(), IsEmpty());
}

TEST_F(OfferedModelsTest, NonsenseIsAnError) {
  add(0, "a");
  listed();
  EXPECT_FALSE(models_.welcome({}).ok());
  welcome({ModelId(7)});
  EXPECT_FALSE(name(0, 8));  // has a name
  EXPECT_FALSE(name(5, 8));  // does not exist
  EXPECT_FALSE(release(5));
  add(1, "b");
  EXPECT_FALSE(name(1, 7));  // another's
  EXPECT_FALSE(models_.name(ModelId(1), kUnnamed).ok());
  EXPECT_TRUE(release(0));
  EXPECT_FALSE(release(0));
  EXPECT_FALSE(name(0, 9));  // released
}

}  // namespace
}  // namespace foliot
