#include "serving/replica_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "core/model_info.h"

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class IgnoredActions : public ActionSink {
 public:
  void send(const Action& /*action*/) override {}
};

class ReplicaDevicesTest : public ::testing::Test {
 protected:
  // Handles what was posted as a controller's loop does; returns the devices that joined.
  std::vector<std::string> handle() {
    std::vector<std::string> joined;
    while (inbox_.events().consume([&](ControllerEvent& event) {
      if (const auto* join = std::get_if<ControllerEvent::JoinDevice>(&event.what)) {
        joined.push_back(std::to_string(join->device.value()) + " " + join->kind);
      } else if (const auto* lose = std::get_if<ControllerEvent::LoseDevice>(&event.what)) {
        ++lost_;
        (*lose->lost)();
      }
    })) {
    }
    return joined;
  }
  void lose(DeviceId device, const std::string& kind) {
    const int before = lost_;
    std::thread waiting([&] { devices_.lose(device, kind); });
    while (lost_ == before) {
      inbox_.events().wait_until(TimePoint::infinite_future(), Duration());
      handle();
    }
    waiting.join();
  }

  ControllerInbox inbox_{64};
  IgnoredActions actions_;
  ReplicaDevices devices_{inbox_, 2};
  int lost_ = 0;
};

TEST_F(ReplicaDevicesTest, VersionsOfAModelThatRunTogetherAreOfDifferentKinds) {
  EXPECT_EQ(devices_.take_kind("digits").value(), "container:digits");
  EXPECT_EQ(devices_.take_kind("digits").value(), "container:digits.2");
  EXPECT_EQ(devices_.take_kind("other").value(), "container:other");
  devices_.give_back_kind("container:digits");
  EXPECT_EQ(devices_.take_kind("digits").value(), "container:digits");
}

TEST_F(ReplicaDevicesTest, AnyNameOfAModelMakesAKind) {
  const std::string kind = devices_.take_kind("größe 1/" + std::string(300, 'x')).value();
  EXPECT_TRUE(is_kind_name(kind)) << kind;
  const std::string second = devices_.take_kind("größe 1/" + std::string(300, 'x')).value();
  EXPECT_TRUE(is_kind_name(second)) << second;
  EXPECT_NE(kind, second);
}

TEST_F(ReplicaDevicesTest, ThereAreOnlySoManyKinds) {
  size_t taken = 0;
  while (devices_.take_kind("m" + std::to_string(taken)).ok()) ++taken;
  EXPECT_EQ(taken, kKindsMax - 1) << "one is that of the other devices";
  EXPECT_THAT(devices_.take_kind("more").status().message(), HasSubstr("63 container models"));
  devices_.give_back_kind("container:m5");
  EXPECT_EQ(devices_.take_kind("m5").value(), "container:m5");
}

TEST_F(ReplicaDevicesTest, ALostDeviceIsUsedAgainByItsKind) {
  const std::string a = devices_.take_kind("a").value();
  const std::string b = devices_.take_kind("b").value();
  const DeviceId first = devices_.join(a, ModelId(0), actions_).value();
  devices_.join(a, ModelId(0), actions_).value();
  EXPECT_THAT(handle(), ElementsAre("2 container:a", "3 container:a"));
  lose(first, a);
  devices_.join(b, ModelId(1), actions_).value();
  devices_.join(a, ModelId(0), actions_).value();
  EXPECT_THAT(handle(), ElementsAre("4 container:b", "2 container:a"));
}

}  // namespace
}  // namespace foliot
