#include "config/price_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace foliot {
namespace {

class PriceFileTest : public testing::Test {
 protected:
  Result<KindPrices> read(const std::string& text) {
    std::ofstream(file_) << text;
    return read_price_file(file_);
  }
  const std::string file_ =
      testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name() + "_foliot_prices.toml";
};

TEST_F(PriceFileTest, ReadsDollarsPerHourByKind) {
  const auto prices = read("cpu = 0.17\n\"cpu:4\" = 1\n");
  ASSERT_TRUE(prices.ok()) << prices.status().message();
  EXPECT_EQ(*prices, (KindPrices{{"cpu", 0.17}, {"cpu:4", 1}}));
}

TEST_F(PriceFileTest, ErrorsNameFileLineAndKind) {
  EXPECT_THAT(read("cpu = 0.17\ncuda = -1\n").status().message(), testing::HasSubstr("foliot_prices.toml:2: 'cuda'"));
  EXPECT_THAT(read("cpu = 'much'\n").status().message(), testing::HasSubstr("foliot_prices.toml:1: 'cpu'"));
  EXPECT_EQ(read_price_file("/nowhere/prices.toml").status().message(), "/nowhere/prices.toml: no such file");
}

}  // namespace
}  // namespace foliot
