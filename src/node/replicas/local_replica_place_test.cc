#include "node/replicas/local_replica_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "foundation/core/model_info.h"

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class IgnoredActions : public ActionSink {
 public:
  void send(const Action& /*action*/) override {}
};

class NoPayloads : public PayloadStore {
 public:
  std::span<const std::byte> input(PayloadHandle /*payload*/, uint32_t /*index*/) override { return {}; }
  std::span<std::byte> output(PayloadHandle /*payload*/, uint32_t /*index*/) override { return {}; }
};

class LocalReplicaPlaceTest : public ::testing::Test {
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
    std::thread waiting([&] { place_.lose(device, kind); });
    while (lost_ == before) {
      inbox_.events().wait_until(TimePoint::infinite_future(), Duration());
      handle();
    }
    waiting.join();
  }

  ControllerInbox inbox_{64};
  IgnoredActions actions_;
  NoPayloads no_payloads_;
  LocalReplicaPlace place_{inbox_, no_payloads_, 2};
  int lost_ = 0;
};

TEST_F(LocalReplicaPlaceTest, VersionsOfAModelThatRunTogetherAreOfDifferentKinds) {
  EXPECT_EQ(place_.kinds().take("digits").value(), "container:digits");
  EXPECT_EQ(place_.kinds().take("digits").value(), "container:digits.2");
  EXPECT_EQ(place_.kinds().take("other").value(), "container:other");
  place_.kinds().give_back("container:digits");
  EXPECT_EQ(place_.kinds().take("digits").value(), "container:digits");
}

TEST_F(LocalReplicaPlaceTest, AnyNameOfAModelMakesAKind) {
  const std::string kind = place_.kinds().take("größe 1/" + std::string(300, 'x')).value();
  EXPECT_TRUE(is_kind_name(kind)) << kind;
  const std::string second = place_.kinds().take("größe 1/" + std::string(300, 'x')).value();
  EXPECT_TRUE(is_kind_name(second)) << second;
  EXPECT_NE(kind, second);
}

TEST_F(LocalReplicaPlaceTest, ThereAreOnlySoManyKinds) {
  size_t taken = 0;
  while (place_.kinds().take("m" + std::to_string(taken)).ok()) ++taken;
  EXPECT_EQ(taken, kKindsMax - 1) << "one is that of the other devices";
  EXPECT_THAT(place_.kinds().take("more").status().message(), HasSubstr("2047 container models"));
  place_.kinds().give_back("container:m5");
  EXPECT_EQ(place_.kinds().take("m5").value(), "container:m5");
}

TEST_F(LocalReplicaPlaceTest, ALostDeviceIsUsedAgainByItsKind) {
  const std::string a = place_.kinds().take("a").value();
  const std::string b = place_.kinds().take("b").value();
  const DeviceId first = place_.join(a, ModelId(0), actions_).value();
  place_.join(a, ModelId(0), actions_).value();
  EXPECT_THAT(handle(), ElementsAre("2 container:a", "3 container:a"));
  lose(first, a);
  place_.join(b, ModelId(1), actions_).value();
  place_.join(a, ModelId(0), actions_).value();
  EXPECT_THAT(handle(), ElementsAre("4 container:b", "2 container:a"));
}

}  // namespace
}  // namespace foliot
