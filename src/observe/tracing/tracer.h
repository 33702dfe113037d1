// Tracer: decides which calls are traced, and gives ids to spans.
//
// A call that brings a traceparent is traced where its caller says so; of the others a share is. What does not
// parse is ignored and counted.
//
// Threading: any; without lock or allocation.
#ifndef FOLIOT_OBSERVE_TRACING_TRACER_H_
#define FOLIOT_OBSERVE_TRACING_TRACER_H_

#include <atomic>
#include <cstdint>
#include <string_view>

#include "foundation/core/trace_context.h"
#include "observe/tracing/span.h"

namespace foliot {

class Tracer {
 public:
  // `share`: of calls without a traceparent, 0 to 1. `seed`: another one in each process, as traces of all of them come
  // together. `sink` outlives this.
  Tracer(double share, uint64_t seed, SpanSink& sink);

  // The span that a call gets, and its parent. No context: it is not traced.
  struct Begun {
    TraceContext context;
    uint64_t parent = 0;
  };
  // `traceparent`: as it came; empty: none did.
  Begun begin(std::string_view traceparent);
  uint64_t next_span();
  void add(const Span& span) { sink_.add(span); }
  void add_dropped(uint64_t count) { sink_.add_dropped(count); }
  uint64_t malformed() const { return malformed_.load(std::memory_order_relaxed); }

 private:
  uint64_t random();

  const uint64_t sampled_below_;  // of 2^64; 0: none
  const bool all_sampled_;
  SpanSink& sink_;
  std::atomic<uint64_t> state_;
  std::atomic<uint64_t> malformed_{0};
};

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_TRACING_TRACER_H_
