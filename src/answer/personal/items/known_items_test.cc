#include "answer/personal/items/known_items.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foliot {
namespace {

using ::testing::HasSubstr;

ItemInput input(const std::string& text) { return std::make_shared<const std::string>(text); }

// As an observation of it that came to the disk.
void observe(KnownItems& items, uint64_t item, const ItemInput& of) {
  const bool is_new = items.find(item) == nullptr;
  ASSERT_TRUE(items.claim(item, of).ok());
  if (is_new) items.keep(item, of);
  items.use(item);
  EXPECT_FALSE(items.release(item));
}

TEST(KnownItemsTest, AnItemLeavesWithItsLastObservation) {
  KnownItems items(100);
  observe(items, 11, input("abc"));
  observe(items, 11, nullptr);
  EXPECT_FALSE(items.stop_using(11));
  EXPECT_EQ(*items.find(11), "abc");
  EXPECT_EQ(items.bytes(), 3U);
  EXPECT_TRUE(items.stop_using(11));
  EXPECT_EQ(items.find(11), nullptr);
  EXPECT_EQ(items.bytes(), 0U);
  EXPECT_FALSE(items.has_kept());
  observe(items, 11, input("another"));
  EXPECT_EQ(*items.find(11), "another");
}

TEST(KnownItemsTest, AClaimedItemStays) {
  KnownItems items(100);
  observe(items, 11, input("abc"));
  ASSERT_TRUE(items.claim(11, nullptr).ok());
  EXPECT_FALSE(items.stop_using(11)) << "an observation is on its way to the disk without its input";
  EXPECT_EQ(*items.find(11), "abc");
  items.use(11);
  EXPECT_FALSE(items.release(11));
  ASSERT_TRUE(items.claim(11, nullptr).ok());
  EXPECT_FALSE(items.stop_using(11));
  EXPECT_TRUE(items.release(11)) << "that observation was refused by the disk";
  EXPECT_EQ(items.find(11), nullptr);
}

TEST(KnownItemsTest, AClaimThatFailsLeavesNothing) {
  KnownItems items(5);
  ASSERT_TRUE(items.claim(11, input("abc")).ok());
  EXPECT_EQ(items.find(11), nullptr);
  EXPECT_EQ(items.all().size(), 1U);
  EXPECT_THAT(items.claim(11, input("abd")).message(), HasSubstr("another input"));
  EXPECT_THAT(items.claim(12, input("abc")).message(), HasSubstr("over the limit of 5"));
  EXPECT_THAT(items.claim(11, nullptr).message(), HasSubstr("item 11 is unknown")) << "its input is not on disk yet";
  EXPECT_FALSE(items.release(11));
  EXPECT_EQ(items.bytes(), 0U);
  EXPECT_TRUE(items.all().empty());
  EXPECT_TRUE(items.claim(12, input("abcde")).ok());
}

TEST(KnownItemsTest, PlacesStayWhereTheyAre) {
  KnownItems items(100);
  for (const uint64_t item : {11, 12, 13}) observe(items, item, input("abc"));
  EXPECT_TRUE(items.stop_using(11));
  ASSERT_EQ(items.places(), 3U);
  EXPECT_FALSE(items.at(0).has_value());
  EXPECT_EQ(items.at(2)->item, 13U);
  observe(items, 14, input("d"));
  EXPECT_EQ(items.places(), 3U);
  EXPECT_EQ(items.at(0)->item, 14U);
  EXPECT_EQ(items.all().size(), 3U);
}

TEST(KnownItemsTest, WhatIsReadFromALogIsCountedAtItsEnd) {
  KnownItems items(100);
  items.keep(11, input("abc"));
  items.keep(12, input("abc"));
  items.keep(11, input("later"));
  items.use(11);
  items.use(13);  // a refused record that came back: its item has no input
  items.remove_unused();
  EXPECT_EQ(*items.find(11), "later");
  EXPECT_EQ(items.find(12), nullptr);
  EXPECT_EQ(items.bytes(), 5U);
  ASSERT_TRUE(items.claim(13, input("x")).ok());
  EXPECT_FALSE(items.release(13));
  EXPECT_EQ(items.bytes(), 5U);
  observe(items, 13, input("y"));
  EXPECT_FALSE(items.stop_using(13)) << "of two";
  EXPECT_TRUE(items.stop_using(13));
}

}  // namespace
}  // namespace foliot
