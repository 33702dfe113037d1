#include "foundation/core/trace_context.h"

#include <gtest/gtest.h>

#include <string>

namespace foliot {
namespace {

const std::string kParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST(TraceContextTest, ReadsWhatTheSpecificationShows) {
  const auto parent = parse_traceparent(kParent);
  ASSERT_TRUE(parent);
  EXPECT_EQ(parent->context, (TraceContext{0x0af7651916cd43dd, 0x8448eb211c80319c, 0xb7ad6b7169203331}));
  EXPECT_TRUE(parent->sampled);
  EXPECT_FALSE(parse_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")->sampled);
}

TEST(TraceContextTest, ReadsOfALaterVersionWhatThisOneHas) {
  EXPECT_TRUE(parse_traceparent("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03-what-comes"));
  EXPECT_TRUE(parse_traceparent("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03"));
  EXPECT_FALSE(parse_traceparent("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03what"));
}

TEST(TraceContextTest, RefusesWhatIsMalformed) {
  for (const std::string& header :
       {std::string(), kParent.substr(1), kParent + "-", kParent + "0", "ff" + kParent.substr(2),
        std::string("00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        std::string("00-00000000000000000000000000000000-b7ad6b7169203331-01"),
        std::string("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"),
        std::string("00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        std::string("00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01"),
        std::string("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g")}) {
    EXPECT_FALSE(parse_traceparent(header)) << header;
  }
}

}  // namespace
}  // namespace foliot
