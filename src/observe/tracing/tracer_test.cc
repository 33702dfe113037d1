#include "observe/tracing/tracer.h"

#include <gtest/gtest.h>

#include <set>

#include "observe/tracing/test_sink.h"

namespace foliot {
namespace {

constexpr std::string_view kSampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
constexpr std::string_view kNotSampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

TEST(TracerTest, FollowsTheCaller) {
  SpanList spans;
  Tracer tracer(1, 1, spans);
  const Tracer::Begun begun = tracer.begin(kSampled);
  EXPECT_EQ(begun.context.trace_high, 0x0af7651916cd43dd);
  EXPECT_EQ(begun.context.trace_low, 0x8448eb211c80319c);
  EXPECT_EQ(begun.parent, 0xb7ad6b7169203331);
  EXPECT_NE(begun.context.span, begun.parent);
  EXPECT_FALSE(tracer.begin(kNotSampled).context) << "whatever the share is";
}

TEST(TracerTest, SamplesAShareOfTheOthers) {
  SpanList spans;
  Tracer tracer(0.1, 7, spans);
  std::set<uint64_t> ids;
  int traced = 0;
  for (int call = 0; call < 10'000; ++call) {
    const Tracer::Begun begun = tracer.begin("");
    if (!begun.context) continue;
    ++traced;
    EXPECT_EQ(begun.parent, 0);
    ids.insert(begun.context.trace_low);
    ids.insert(begun.context.span);
  }
  EXPECT_NEAR(traced, 1000, 150);
  EXPECT_EQ(ids.size(), 2 * traced);
}

TEST(TracerTest, SamplesNothingByDefault) {
  SpanList spans;
  Tracer tracer(0, 7, spans);
  for (int call = 0; call < 1000; ++call) EXPECT_FALSE(tracer.begin("").context);
}

TEST(TracerTest, IgnoresAndCountsWhatIsMalformed) {
  SpanList spans;
  Tracer tracer(0, 1, spans);
  EXPECT_FALSE(tracer.begin("00-what").context);
  EXPECT_EQ(tracer.malformed(), 1);
  tracer.begin(kSampled);
  tracer.begin("");
  EXPECT_EQ(tracer.malformed(), 1);
  Tracer of_all(1, 1, spans);
  EXPECT_EQ(of_all.begin("00-what").parent, 0) << "as if it had brought none";
  EXPECT_TRUE(of_all.begin("00-what").context);
}

}  // namespace
}  // namespace foliot
