#include "foundation/base/histogram.h"

#include <gtest/gtest.h>

namespace foliot {
namespace {

TEST(HistogramTest, QuantilesAreWithinOnePerCentOfExactOnes) {
  Histogram histogram;
  for (int i = 1; i <= 100'000; ++i) histogram.record(Duration::microseconds(i));
  for (const double q : {0.5, 0.9, 0.99, 0.999, 0.9999}) {
    const double exact = q * 100'000;
    EXPECT_NEAR(histogram.quantile(q).to_microseconds(), exact, exact * 0.016) << q;
  }
  EXPECT_EQ(histogram.quantile(1), Duration::microseconds(100'000));
  EXPECT_EQ(histogram.min(), Duration::microseconds(1));
  EXPECT_NEAR(histogram.mean().to_microseconds(), 50'000.5, 1);
}

TEST(HistogramTest, MergingIsRecordingBoth) {
  Histogram a, b, both;
  for (int i = 0; i < 1000; ++i) {
    (i % 3 == 0 ? a : b).record(Duration::nanoseconds(i * i));
    both.record(Duration::nanoseconds(i * i));
  }
  a.merge(b);
  EXPECT_EQ(a.count(), both.count());
  EXPECT_EQ(a.quantile(0.9), both.quantile(0.9));
  EXPECT_EQ(a.max(), both.max());
}

TEST(HistogramTest, AnEmptyOneIsAllZero) {
  const Histogram histogram;
  EXPECT_EQ(histogram.quantile(0.99), Duration());
  EXPECT_EQ(histogram.min(), Duration());
  EXPECT_EQ(histogram.mean(), Duration());
}

TEST(HistogramTest, TakesExtremes) {
  Histogram histogram;
  histogram.record(-Duration::seconds(1));
  histogram.record(Duration::max());
  EXPECT_EQ(histogram.min(), Duration());
  EXPECT_EQ(histogram.max(), Duration::max());
}

}  // namespace
}  // namespace foliot
