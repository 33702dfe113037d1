#include "observe/tracing/span_exporter.h"

#include <gtest/gtest.h>

#include <future>

namespace foliot {
namespace {

TEST(SpanExporterTest, SendsBatchesAndCountsThem) {
  std::vector<size_t> sizes;
  SpanExporter exporter([&](std::span<const Span> spans) {
    sizes.push_back(spans.size());
    return Status();
  });
  EXPECT_FALSE(exporter.send_batch());
  for (size_t i = 0; i < SpanExporter::kBatchMax + 3; ++i) exporter.add(Span());
  EXPECT_TRUE(exporter.send_batch());
  EXPECT_FALSE(exporter.send_batch());
  EXPECT_EQ(sizes, (std::vector<size_t>{SpanExporter::kBatchMax, 3}));
  EXPECT_EQ(exporter.counts().sent, SpanExporter::kBatchMax + 3);
}

TEST(SpanExporterTest, WhatHasNoRoomIsDroppedAndCounted) {
  SpanExporter exporter([](std::span<const Span>) { return Status(); });
  for (size_t i = 0; i < SpanExporter::kWaitingMax + 5; ++i) exporter.add(Span());
  EXPECT_EQ(exporter.counts().dropped, 5);
  exporter.send_batch();
  exporter.add(Span());
  EXPECT_EQ(exporter.counts().dropped, 5) << "there is room again";
}

TEST(SpanExporterTest, ABatchThatIsNotTakenIsCounted) {
  bool there = false;
  SpanExporter exporter([&](std::span<const Span>) { return there ? Status() : Status::unavailable("it is gone"); });
  exporter.add(Span());
  exporter.send_batch();
  EXPECT_TRUE(exporter.failing());
  EXPECT_EQ(exporter.counts().failed, 1);
  there = true;
  exporter.add(Span());
  exporter.send_batch();
  EXPECT_FALSE(exporter.failing());
  EXPECT_EQ(exporter.counts().sent, 1);
}

TEST(SpanExporterTest, ItsThreadWakesForASpan) {
  std::promise<size_t> sent;
  SpanExporter exporter([&](std::span<const Span> spans) {
    sent.set_value(spans.size());
    return Status();
  });
  ASSERT_TRUE(exporter.start().ok());
  exporter.add(Span());
  EXPECT_EQ(sent.get_future().get(), 1);
}

TEST(SpanExporterTest, WhatWaitsAtTheEndIsSent) {
  size_t sent = 0;
  {
    SpanExporter exporter([&](std::span<const Span> spans) {
      sent += spans.size();
      return Status();
    });
    ASSERT_TRUE(exporter.start().ok());
    exporter.add(Span());
    exporter.add(Span());
  }
  EXPECT_EQ(sent, 2);
}

}  // namespace
}  // namespace foliot
