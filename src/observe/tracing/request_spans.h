// RequestSpans: the observer that makes spans of what the controller does with requests that are traced: their queues,
// LOADs, INPUT, EXEC and OUTPUT, and the stages of pipelines. Where no request is traced, an action costs it a look at
// an empty table.
//
// Bounded: kOpenMax requests at a time; of more there are no spans, and they are counted.
//
// Workers report their times to the controller with each outcome, so it makes their spans, too: they then need no
// collector, and actions carry no more than without traces (decision 0331). The instant at which INPUT began is not
// reported: it is shown from when the action was sent.
//
// Threading: Observer's calls, from the controller's loop.
#ifndef FOLIOT_OBSERVE_TRACING_REQUEST_SPANS_H_
#define FOLIOT_OBSERVE_TRACING_REQUEST_SPANS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "foundation/core/call_label.h"
#include "foundation/core/observer.h"
#include "foundation/core/stage_slots.h"
#include "observe/tracing/tracer.h"

namespace foliot {

class RequestSpans : public Observer, public CallLabelSink {
 public:
  static constexpr size_t kOpenMax = 1024;

  // `tracer` outlives this.
  explicit RequestSpans(Tracer& tracer) : tracer_(tracer) { open_.reserve(kOpenMax); }

  void on_label(RequestId request, std::shared_ptr<const CallLabel> label) override;
  void on_model(const ModelInfo& model) override;
  void on_request(const Request& request, TimePoint now) override;
  void on_action(const Action& action, TimePoint now) override;
  void on_outcome(const Action& action, const Outcome& outcome, TimePoint now) override;
  void on_completion(const Completion& completion, TimePoint now) override;
  void on_run(const Request& request, const PipelineInfo* pipeline, TimePoint now) override;
  void on_run_over(const Completion& completion, TimePoint now) override;

 private:
  struct Open {
    Span span;
    ModelId model;
    std::optional<TimePoint> sent;   // in the last action
    std::optional<DeviceId> device;  // likewise
    // Of a run: the stages' names by slot.
    StageSlots slots{};
    std::vector<std::string> stages{};
  };

  std::string_view name_of(ModelId model) const;
  // Null: there are too many.
  Open* open(const Request& request, const TraceContext& parent, SpanKind kind, std::string_view name);
  // A part of the time of `open`.
  void add_part(const Open& open, SpanKind kind, TimePoint begin, TimePoint end, uint32_t rows);
  void add_execution(const Open& open, const Completion& completion);

  Tracer& tracer_;
  std::vector<std::string> names_;  // by ModelId
  std::unordered_map<RequestId, Open> open_;
  // Of the request that comes next.
  RequestId labelled_;
  TraceContext parent_;
};

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_TRACING_REQUEST_SPANS_H_
