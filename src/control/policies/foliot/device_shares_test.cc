#include "control/policies/foliot/device_shares.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace foliot::foliot_policy {
namespace {

constexpr ModelId kSlow(0);
constexpr ModelId kSmall(1);
constexpr KindId kKind(0);

// Models that ask evenly.
class DeviceSharesTest : public testing::Test {
 protected:
  struct Asks {
    ModelId model;
    double each_ms;      // of a device
    double every_ms;     // a request
    double patience_ms;  // its SLO
    double weight = 1;
    KindId kind = kKind;
    double memory = 0;  // the part of the kind's pages
  };
  // All of them for so long.
  void ask(std::vector<Asks> all, double ms) {
    for (; ms_ < end_ + ms; ms_ += 0.5) {
      for (const Asks& asks : all) {
        if (std::fmod(ms_, asks.every_ms) >= 0.5) continue;
        shares_.on_request(asks.model,
                           {.kind = asks.kind,
                            .devices = devices_,
                            .weight = asks.weight,
                            .device_time = Duration::from_milliseconds(asks.each_ms),
                            .patience = Duration::from_milliseconds(asks.patience_ms),
                            .memory = asks.memory},
                           TimePoint() + Duration::from_milliseconds(ms_));
      }
    }
    end_ += ms;
  }

  uint32_t devices_ = 1;
  double ms_ = 0;
  double end_ = 0;
  DeviceShares shares_;
};

TEST_F(DeviceSharesTest, AModelThatAsksForLessThanItsShareIsModestWhateverOthersAskFor) {
  ask({{kSlow, 100, 1000, 2000}, {kSmall, 1, 0.5, 30}}, 60'000);
  EXPECT_TRUE(shares_.modest(kSlow));
  EXPECT_FALSE(shares_.modest(kSmall));
}

TEST_F(DeviceSharesTest, WhatOthersLeaveIsShared) {
  ask({{kSlow, 80, 100, 500}, {kSmall, 1, 10, 30}}, 10'000);
  EXPECT_TRUE(shares_.modest(kSlow));
  EXPECT_TRUE(shares_.modest(kSmall));
}

TEST_F(DeviceSharesTest, AModelThatAsksForATenthMoreThanItsShareIsNotModest) {
  ask({{kSlow, 110, 200, 500}, {kSmall, 1.1, 1, 30}}, 20'000);
  EXPECT_FALSE(shares_.modest(kSlow));
  EXPECT_FALSE(shares_.modest(kSmall));
}

TEST_F(DeviceSharesTest, AModelThatAsksForHalfOfItsShareKeepsIt) {
  ask({{kSlow, 50, 250, 500}, {kSmall, 1.1, 1, 30}}, 20'000);
  EXPECT_TRUE(shares_.keeps_share(kSlow));
  EXPECT_FALSE(shares_.keeps_share(kSmall));
}

TEST_F(DeviceSharesTest, AModelThatAsksForMostOfItsShareDoesNotAskForHalf) {
  ask({{kSlow, 95, 250, 500}, {kSmall, 1.1, 1, 30}}, 20'000);
  EXPECT_TRUE(shares_.modest(kSlow));
  EXPECT_FALSE(shares_.keeps_share(kSlow));
}

TEST_F(DeviceSharesTest, AModelThatItsShareOfTheMemoryCannotHoldKeepsNoTime) {
  ask({{kSlow, 50, 250, 500, 1, kKind, 0.6}, {kSmall, 1.1, 1, 30}}, 20'000);
  EXPECT_FALSE(shares_.keeps_share(kSlow));
  EXPECT_TRUE(shares_.modest(kSlow));
  ask({{kSlow, 50, 250, 500, 1, kKind, 0.4}, {kSmall, 1.1, 1, 30}}, 20'000);
  EXPECT_TRUE(shares_.keeps_share(kSlow));
}

TEST_F(DeviceSharesTest, ModelsThatWereAskedForLatelyShareTheMemory) {
  const Asks slow{kSlow, 50, 250, 500, 1, kKind, 0.4};
  ask({slow, {kSmall, 1.1, 1, 30}, {ModelId(2), 1, 2000, 30}}, 20'000);
  EXPECT_FALSE(shares_.keeps_share(kSlow)) << "a third of the memory";
  ask({slow, {kSmall, 1.1, 1, 30}}, 30'000);
  EXPECT_TRUE(shares_.keeps_share(kSlow)) << "a half: the other has not been asked for";
  ask({slow, {kSmall, 1.1, 1, 30}, {ModelId(2), 1, 2000, 30}}, 20'000);
  EXPECT_FALSE(shares_.keeps_share(kSlow));
  shares_.forget(ModelId(2));
  EXPECT_TRUE(shares_.keeps_share(kSlow));
}

TEST_F(DeviceSharesTest, SharesFollowWeights) {
  ask({{kSlow, 140, 200, 1000, 3}, {kSmall, 1, 1, 30, 1}}, 20'000);
  EXPECT_TRUE(shares_.modest(kSlow));
  EXPECT_FALSE(shares_.modest(kSmall));
}

TEST_F(DeviceSharesTest, DevicesOfAKindAreSharedTogether) {
  devices_ = 4;
  ask({{kSlow, 380, 200, 1000}, {kSmall, 1.8, 1, 30}}, 20'000);
  EXPECT_TRUE(shares_.modest(kSlow));
  EXPECT_TRUE(shares_.modest(kSmall));
}

TEST_F(DeviceSharesTest, KindsOfDevicesAreSharedApart) {
  ask({{kSlow, 180, 200, 1000}, {kSmall, 2, 1, 30, 1, KindId(1)}}, 20'000);
  EXPECT_TRUE(shares_.modest(kSlow));
  EXPECT_FALSE(shares_.modest(kSmall));
}

TEST_F(DeviceSharesTest, AModelIsModestAgainSoonAfterItHasAskedForTooMuch) {
  ask({{kSlow, 300, 100, 500}, {kSmall, 1, 10, 30}}, 10'000);
  EXPECT_FALSE(shares_.modest(kSlow));
  ask({{kSlow, 30, 100, 500}, {kSmall, 1, 10, 30}}, 3'000);
  EXPECT_TRUE(shares_.modest(kSlow));
}

TEST_F(DeviceSharesTest, AModelThatTakesAnIdBeginsAnew) {
  ask({{kSlow, 300, 100, 500}}, 10'000);
  EXPECT_FALSE(shares_.modest(kSlow));
  shares_.forget(kSlow);
  EXPECT_TRUE(shares_.modest(kSlow));
  ask({{kSlow, 30, 100, 500}}, 3'000);
  EXPECT_TRUE(shares_.modest(kSlow));
}

}  // namespace
}  // namespace foliot::foliot_policy
