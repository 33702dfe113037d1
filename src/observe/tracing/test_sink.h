// SpanList: keeps spans in memory. For tests.
#ifndef FOLIOT_OBSERVE_TRACING_TEST_SINK_H_
#define FOLIOT_OBSERVE_TRACING_TEST_SINK_H_

#include <cstdint>
#include <vector>

#include "observe/tracing/span.h"

namespace foliot {

class SpanList : public SpanSink {
 public:
  void add(const Span& span) override { spans.push_back(span); }
  void add_dropped(uint64_t count) override { dropped += count; }

  std::vector<Span> spans;
  uint64_t dropped = 0;
};

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_TRACING_TEST_SINK_H_
