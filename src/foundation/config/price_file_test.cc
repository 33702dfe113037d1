#include "foundation/config/price_file.h"

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

TEST_F(PriceFileTest, AKindMayHaveALimitOfDevices) {
  std::ofstream(file_) << "cpu = { dollars = 0.5, devices = 8 }\n\"cpu:4\" = { dollars = 1 }\ngpu = 2\n";
  const auto offers = read_offer_file(file_);
  ASSERT_TRUE(offers.ok()) << offers.status().message();
  EXPECT_EQ(offers->prices, (KindPrices{{"cpu", 0.5}, {"cpu:4", 1}, {"gpu", 2}}));
  EXPECT_EQ(offers->devices, (KindLimits{{"cpu", 8}}));
  EXPECT_EQ(read_price_file(file_)->at("cpu"), 0.5) << "where limits do not count";
  EXPECT_THAT(read("cpu = { devices = 8 }\n").status().message(), testing::HasSubstr("needs 'dollars'"));
  EXPECT_THAT(read("cpu = { dollars = 1, devices = -1 }\n").status().message(), testing::HasSubstr("'devices'"));
}

TEST_F(PriceFileTest, ErrorsNameFileLineAndKind) {
  EXPECT_THAT(read("cpu = 0.17\ncuda = -1\n").status().message(), testing::HasSubstr("foliot_prices.toml:2: 'cuda'"));
  EXPECT_THAT(read("cpu = 'much'\n").status().message(), testing::HasSubstr("foliot_prices.toml:1: 'cpu'"));
  EXPECT_EQ(read_price_file("/nowhere/prices.toml").status().message(),
            "/nowhere/prices.toml: no such file; check the path");
}

}  // namespace
}  // namespace foliot
