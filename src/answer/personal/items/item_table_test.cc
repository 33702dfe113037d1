#include "answer/personal/items/item_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "answer/personal/items/test_items.h"

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ItemTableTest : public testing::Test {
 protected:
  std::string write(size_t features, std::vector<uint64_t> items, std::vector<float> rows) {
    return ItemTable::write(file_, features, items, rows).message();
  }
  const TestFolder folder_{"item_table"};
  const std::filesystem::path file_ = folder_.path / "items";
};

TEST_F(ItemTableTest, KeepsFeatures) {
  ASSERT_EQ(write(2, {5, 7, 9}, {1, 2, 3, 4, 5, 6}), "");
  const auto table = ItemTable::open(file_).value();
  EXPECT_THAT(table->items(), ElementsAre(5, 7, 9));
  EXPECT_THAT(table->row(1), ElementsAre(3, 4, 0, 0, 0, 0, 0, 0));
  EXPECT_EQ(table->find(9), 2u);
  EXPECT_FALSE(table->find(8).has_value());
  EXPECT_FALSE(table->find(10).has_value());
}

TEST_F(ItemTableTest, ErrorsNameWhatIsWrong) {
  EXPECT_THAT(write(1, {5, 5}, {1, 2}), HasSubstr("item 5 is not below item 5"));
  EXPECT_THAT(write(1, {6, 5}, {1, 2}), HasSubstr("item 6 is not below item 5"));
  EXPECT_THAT(write(2, {6}, {1, std::numeric_limits<float>::quiet_NaN()}), HasSubstr("feature 1 of item 6"));
  EXPECT_THAT(write(2, {6}, {1}), HasSubstr("1 values are not 1 items of 2 features"));
  EXPECT_THAT(write(1001, {}, {}), HasSubstr("1 to 1000"));
  EXPECT_EQ(ItemTable::open(folder_.path / "none").status().code(), StatusCode::kNotFound);
}

TEST_F(ItemTableTest, ADamagedFileIsRefused) {
  ASSERT_EQ(write(2, {5, 7, 9}, {1, 2, 3, 4, 5, 6}), "");
  std::filesystem::resize_file(file_, std::filesystem::file_size(file_) - 1);
  EXPECT_THAT(ItemTable::open(file_).status().message(), HasSubstr("is damaged"));
  ASSERT_EQ(write(2, {5, 7, 9}, {1, 2, 3, 4, 5, 6}), "");
  std::fstream(file_, std::ios::in | std::ios::out).seekp(40).put(8);
  EXPECT_THAT(ItemTable::open(file_).status().message(), HasSubstr("its checksum differs"));
  std::fstream(file_, std::ios::in | std::ios::out).seekp(0).put(8);
  EXPECT_THAT(ItemTable::open(file_).status().message(), HasSubstr("no table of items"));
}

}  // namespace
}  // namespace foliot
