// TraceContext: the place of a call in a distributed trace, as W3C Trace Context names it: the trace, and the
// span of which what follows is a part. Only calls that are sampled carry one.
#ifndef FOLIOT_FOUNDATION_CORE_TRACE_CONTEXT_H_
#define FOLIOT_FOUNDATION_CORE_TRACE_CONTEXT_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace foliot {

struct TraceContext {
  // Of the trace; both 0: there is none.
  uint64_t trace_high = 0;
  uint64_t trace_low = 0;
  uint64_t span = 0;

  explicit operator bool() const { return (trace_high | trace_low) != 0; }
  bool operator==(const TraceContext&) const = default;
};

// What a client says of its call.
struct TraceParent {
  TraceContext context;
  bool sampled = false;
};

// The value of a `traceparent` header of version 00, or of a later one, of which only what 00 has is read.
// nullopt: it is malformed.
std::optional<TraceParent> parse_traceparent(std::string_view header);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_TRACE_CONTEXT_H_
