#include "virtual/world/device_speeds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foliot {
namespace {

using testing::HasSubstr;

TEST(DeviceSpeeds, AreReadLineByLine) {
  const auto speeds = parse_device_speeds("# measured\n0.5 1\n\n1.25 0.5\n");
  ASSERT_TRUE(speeds.ok()) << speeds.status().message();
  ASSERT_EQ(speeds->size(), 2u);
  EXPECT_EQ((*speeds)[1].from, Duration::milliseconds(1250));
  EXPECT_EQ((*speeds)[1].speed, 0.5);
}

TEST(DeviceSpeeds, ErrorsNameTheLine) {
  EXPECT_THAT(parse_device_speeds("0 1\n1\n").status().message(), HasSubstr("line 2: '1' is not"));
  EXPECT_THAT(parse_device_speeds("0 0\n").status().message(), HasSubstr("line 1: '0 0' is not"));
  EXPECT_THAT(parse_device_speeds("0 1 2\n").status().message(), HasSubstr("line 1"));
  EXPECT_THAT(parse_device_speeds("1 1\n0 1\n").status().message(), HasSubstr("line 2: instants must ascend"));
  EXPECT_THAT(read_device_speeds("/nowhere/speeds").status().message(), HasSubstr("cannot read '/nowhere/speeds'"));
}

}  // namespace
}  // namespace foliot
