// Span: one part of a traced call's time, and the port that takes it. It is a copy of all that an exporter says of
// it, of a fixed size, so that it can wait in a ring.
//
// Instants are of the clock of the process that made it.
#ifndef FOLIOT_OBSERVE_TRACING_SPAN_H_
#define FOLIOT_OBSERVE_TRACING_SPAN_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "foundation/base/time.h"
#include "foundation/core/ids.h"
#include "foundation/core/request.h"
#include "foundation/core/trace_context.h"

namespace foliot {

// Whose time it is. Workers measure, and the controller makes their spans.
enum class SpanPart : uint8_t { kFrontend, kController, kWorker };

enum class SpanKind : uint8_t {
  kCall,     // a client's call, from its arrival until its answer leaves
  kRequest,  // one row of it, as the controller sees it
  kRun,      // one row of a call of a pipeline
  kStage,    // one visit of a stage of a pipeline
  kQueue,    // from arrival until the action is sent
  kLoad,     // a LOAD of the model while it waited
  kInput,
  kExec,
  kOutput,
};

struct Span {
  // A longer name is cut.
  static constexpr size_t kNameBytesMax = 96;

  TraceContext context;  // the trace, and the span's own id
  uint64_t parent = 0;   // 0: it is the first of its trace
  SpanPart part = SpanPart::kController;
  SpanKind kind = SpanKind::kRequest;
  Refusal refusal = Refusal::kNone;  // of kCall, kRequest, kRun and kStage
  TimePoint begin;
  TimePoint end;
  RequestId request{};               // 0: it has no number
  std::optional<DeviceId> device{};  // where it ran
  uint32_t rows = 0;                 // of a call; of EXEC, those of its batch; 0: it has none
  uint8_t name_bytes = 0;
  std::array<char, kNameBytesMax> name{};  // the model, or the stage

  void set_name(std::string_view text) {
    name_bytes = static_cast<uint8_t>(std::min(text.size(), kNameBytesMax));
    std::copy_n(text.begin(), name_bytes, name.begin());
  }
  std::string_view name_text() const { return {name.data(), name_bytes}; }
};

// Threading: any; without lock or allocation.
class SpanSink {
 public:
  virtual ~SpanSink() = default;
  virtual void add(const Span& span) = 0;
  // So many were not made, for want of memory.
  virtual void add_dropped(uint64_t count) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_TRACING_SPAN_H_
