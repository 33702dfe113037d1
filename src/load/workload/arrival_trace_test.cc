#include "load/workload/arrival_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace foliot {
namespace {

using testing::HasSubstr;

TEST(ArrivalTraceTest, ReadsInstants) {
  const auto instants = parse_arrival_trace("# recorded\n0\n\n 0.0015 \r\n2e-1\n1");
  ASSERT_TRUE(instants.ok()) << instants.status().message();
  EXPECT_EQ(*instants, (std::vector<Duration>{Duration(), Duration::microseconds(1500), Duration::milliseconds(200),
                                              Duration::seconds(1)}));
}

TEST(ArrivalTraceTest, EmptyIsNoArrivals) {
  const auto instants = parse_arrival_trace("");
  ASSERT_TRUE(instants.ok());
  EXPECT_TRUE(instants->empty());
}

TEST(ArrivalTraceTest, BadLinesAreNamed) {
  for (const char* text : {"0\nsoon\n", "0\n1 2\n", "0\n-1\n", "0\nnan\n", "0\n1e300\n", "1\n0.5\n"}) {
    const auto instants = parse_arrival_trace(text);
    ASSERT_FALSE(instants.ok()) << text;
    EXPECT_EQ(instants.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(instants.status().message(), HasSubstr("line 2"));
  }
}

TEST(ArrivalTraceTest, FilesAreReadAndNamed) {
  const std::string path = testing::TempDir() + "arrival_trace_test.txt";
  std::ofstream(path) << "0\n0.5\n";
  const auto instants = read_arrival_trace(path);
  ASSERT_TRUE(instants.ok()) << instants.status().message();
  EXPECT_EQ(instants->size(), 2u);
  const auto missing = read_arrival_trace(path + ".missing");
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(missing.status().message(), HasSubstr(path));
  EXPECT_FALSE(read_arrival_trace(testing::TempDir()).ok());
  std::ofstream(path) << "# none\n";
  EXPECT_THAT(read_arrival_trace(path).status().message(), HasSubstr("no instant is in it"));
}

}  // namespace
}  // namespace foliot
