#include "observe/tracing/request_spans.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "foundation/core/stage_visit.h"
#include "observe/tracing/test_sink.h"

namespace foliot {
namespace {

constexpr TraceContext kCall{1, 2, 3};

TimePoint at(int64_t milliseconds) { return TimePoint() + Duration::milliseconds(milliseconds); }

class RequestSpansTest : public testing::Test {
 protected:
  RequestSpansTest() {
    ModelInfo model;
    model.id = ModelId(0);
    model.name = "digits";
    spans_.on_model(model);
  }

  void label(RequestId id, const TraceContext& trace = kCall) {
    CallLabel label;
    label.trace = trace;
    spans_.on_label(id, std::make_shared<const CallLabel>(label));
  }
  static Request request(RequestId id) { return {.id = id, .model = ModelId(0), .arrival = at(10)}; }
  static Action infer(RequestId row) {
    Action action{.id = ActionId(1), .type = ActionType::kInfer, .device = DeviceId(4), .model = ModelId(0)};
    action.rows.add({row, PayloadHandle()});
    return action;
  }
  static Completion served(RequestId id) {
    Completion completion{.id = id, .model = ModelId(0), .finished = at(30), .batch_size = 2};
    completion.exec_start = at(20);
    completion.exec_duration = Duration::milliseconds(5);
    completion.input_duration = Duration::milliseconds(1);
    completion.output_duration = Duration::milliseconds(2);
    return completion;
  }
  const Span* find(SpanKind kind) const {
    const auto found = std::ranges::find(list_.spans, kind, &Span::kind);
    return found == list_.spans.end() ? nullptr : &*found;
  }

  SpanList list_;
  Tracer tracer_{0, 1, list_};
  RequestSpans spans_{tracer_};
};

TEST_F(RequestSpansTest, ARequestThatIsServedHasAllParts) {
  label(RequestId(7));
  spans_.on_request(request(RequestId(7)), at(10));
  spans_.on_action(infer(RequestId(7)), at(12));
  spans_.on_completion(served(RequestId(7)), at(31));
  ASSERT_EQ(list_.spans.size(), 5);
  const Span& whole = *find(SpanKind::kRequest);
  EXPECT_EQ(whole.parent, kCall.span);
  EXPECT_EQ(whole.begin, at(10));
  EXPECT_EQ(whole.end, at(30));
  EXPECT_EQ(whole.name_text(), "digits");
  for (const Span& span : list_.spans) {
    EXPECT_EQ(span.context.trace_high, kCall.trace_high);
    const uint64_t parent = span.kind == SpanKind::kRequest ? kCall.span : whole.context.span;
    EXPECT_EQ(span.parent, parent);
  }
  EXPECT_EQ(find(SpanKind::kQueue)->end, at(12));
  EXPECT_EQ(find(SpanKind::kQueue)->part, SpanPart::kController);
  EXPECT_EQ(find(SpanKind::kInput)->begin, at(12));
  EXPECT_EQ(find(SpanKind::kExec)->begin, at(20));
  EXPECT_EQ(find(SpanKind::kExec)->end, at(25));
  EXPECT_EQ(find(SpanKind::kExec)->rows, 2);
  EXPECT_EQ(find(SpanKind::kExec)->part, SpanPart::kWorker);
  EXPECT_EQ(find(SpanKind::kExec)->device, DeviceId(4));
  EXPECT_EQ(find(SpanKind::kOutput)->end, at(27));
}

TEST_F(RequestSpansTest, ARefusedRequestHasAQueueAndTheReason) {
  label(RequestId(7));
  spans_.on_request(request(RequestId(7)), at(10));
  spans_.on_completion({.id = RequestId(7), .refusal = Refusal::kOverload, .finished = at(11)}, at(11));
  ASSERT_EQ(list_.spans.size(), 2);
  EXPECT_EQ(find(SpanKind::kRequest)->refusal, Refusal::kOverload);
  EXPECT_EQ(find(SpanKind::kQueue)->end, at(11));
}

TEST_F(RequestSpansTest, ALoadThatItWaitedForIsShown) {
  label(RequestId(7));
  spans_.on_request(request(RequestId(7)), at(10));
  const Action load{.id = ActionId(2), .type = ActionType::kLoad, .device = DeviceId(4), .model = ModelId(0)};
  Outcome outcome{.action = load.id, .type = load.type, .status = OutcomeStatus::kDone, .start = at(11), .end = at(15)};
  spans_.on_outcome(load, outcome, at(15));
  ASSERT_NE(find(SpanKind::kLoad), nullptr);
  EXPECT_EQ(find(SpanKind::kLoad)->end, at(15));
  // Of another model, or once it is under way: not.
  Action other = load;
  other.model = ModelId(9);
  spans_.on_outcome(other, outcome, at(15));
  spans_.on_action(infer(RequestId(7)), at(16));
  spans_.on_outcome(load, outcome, at(17));
  EXPECT_EQ(list_.spans.size(), 1);
}

TEST_F(RequestSpansTest, WhatIsNotTracedHasNone) {
  spans_.on_request(request(RequestId(7)), at(10));
  label(RequestId(8), {});
  spans_.on_request(request(RequestId(8)), at(10));
  label(RequestId(9));
  spans_.on_request(request(RequestId(10)), at(10));  // the label is another's
  for (const uint64_t id : {7, 8, 10}) {
    spans_.on_action(infer(RequestId(id)), at(12));
    spans_.on_completion(served(RequestId(id)), at(31));
  }
  EXPECT_TRUE(list_.spans.empty());
}

TEST_F(RequestSpansTest, StagesArePartsOfTheirRun) {
  PipelineInfo pipeline;
  pipeline.name = "street";
  pipeline.stages.resize(2);
  pipeline.stages[0].name = "detect";
  pipeline.stages[1].name = "read";
  const RequestId run(uint64_t{1} << 40);
  label(run);
  spans_.on_run(request(run), &pipeline, at(10));
  const RequestId visit = visit_of(run, 1);
  spans_.on_request(request(visit), at(11));
  spans_.on_action(infer(visit), at(12));
  spans_.on_completion(served(visit), at(31));
  spans_.on_run_over({.id = run, .finished = at(32)}, at(32));
  ASSERT_EQ(list_.spans.size(), 6);
  const Span& whole = *find(SpanKind::kRun);
  const Span& stage = *find(SpanKind::kStage);
  EXPECT_EQ(whole.name_text(), "street");
  EXPECT_EQ(whole.parent, kCall.span);
  EXPECT_EQ(stage.name_text(), "read");
  EXPECT_EQ(stage.parent, whole.context.span);
  EXPECT_EQ(find(SpanKind::kExec)->parent, stage.context.span);
}

TEST_F(RequestSpansTest, ItsMemoryIsBounded) {
  for (uint64_t id = 1; id <= RequestSpans::kOpenMax + 2; ++id) {
    label(RequestId(id));
    spans_.on_request(request(RequestId(id)), at(10));
  }
  EXPECT_EQ(list_.dropped, 2);
  spans_.on_completion(served(RequestId(1)), at(31));
  label(RequestId(9999));
  spans_.on_request(request(RequestId(9999)), at(32));
  EXPECT_EQ(list_.dropped, 2);
}

}  // namespace
}  // namespace foliot
