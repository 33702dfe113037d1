// FunctionTrace: a workload of many functions, each invoked now and then, as
// serverless platforms record them. Recorded (azure_trace.h) or made up
// (azure_like_trace.h); replayed with functions mapped onto models.
//
// Threading: a trace is immutable and may be shared; a replay has one owner.
#ifndef FOLIOT_LOAD_WORKLOAD_FUNCTION_TRACE_H_
#define FOLIOT_LOAD_WORKLOAD_FUNCTION_TRACE_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "foundation/base/random.h"
#include "foundation/base/time.h"

namespace foliot {

struct Invocation {
  Duration at;  // since the start of the trace
  uint32_t function = 0;
};

class TraceReplay {
 public:
  virtual ~TraceReplay() = default;
  // In order of time; nullopt at the end, and then for good.
  virtual std::optional<Invocation> next() = 0;
};

class FunctionTrace {
 public:
  virtual ~FunctionTrace() = default;
  virtual uint32_t functions() const = 0;
  // From the start. What the trace leaves open (where in its minute an invocation
  // was) is drawn from `random`. The trace must outlive the replay.
  virtual std::unique_ptr<TraceReplay> replay(Random random) const = 0;
};

}  // namespace foliot

#endif  // FOLIOT_LOAD_WORKLOAD_FUNCTION_TRACE_H_
