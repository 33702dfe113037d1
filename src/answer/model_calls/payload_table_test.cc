#include "answer/model_calls/payload_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "answer/inference/conformance/test_models.h"
#include "answer/model_calls/pending_call.h"

namespace foliot {
namespace {

class NoRequests : public RequestSink {
 public:
  void submit(const Request& /*request*/) override {}
  void cancel(RequestId request, Refusal /*reason*/) override { cancelled.push_back(request); }
  std::vector<RequestId> cancelled;
};

class KeepingSink : public AnswerSink {
 public:
  void on_answer(CallId call, std::unique_ptr<Answer> answer) override {
    calls.push_back(call);
    answers.push_back(std::move(answer));
  }
  std::vector<CallId> calls;
  std::vector<std::unique_ptr<Answer>> answers;
};

class PayloadTableTest : public ::testing::Test {
 protected:
  std::unique_ptr<PendingCall> pend(int64_t rows) { return pend(rows, table_); }
  std::unique_ptr<PendingCall> pend(int64_t rows, PayloadTable& table, std::optional<Duration> timeout = {},
                                    uint64_t body_bytes = 0, TenantLease lease = {}) {
    const auto bytes = std::as_bytes(std::span(numbers_)).first(static_cast<size_t>(rows) * 8);
    const Query query{.deadline = timeout ? TimePoint() + *timeout : TimePoint::infinite_future(),
                      .inputs = {{"x", "FP32", {rows, 2}, bytes}},
                      .body_bytes = body_bytes};
    auto call = InferenceCall::make(model_, query);
    FOLIOT_CHECK(call.ok());
    const PendingCall::Shared& shared =
        shared_.emplace_back(PendingCall::Shared{table, requests_, alarms_, answer_path_, metrics_, now_});
    return std::make_unique<PendingCall>(std::move(call).value(), Caller{nullptr, mailbox_, sink_}, counters_,
                                         std::move(lease), Tracer::Begun(), shared);
  }

  std::shared_ptr<const ModelInfo> model_ = std::make_shared<ModelInfo>(doubling_model(ModelId(1)));
  float numbers_[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  int wakes_ = 0;
  NoRequests requests_;
  Mailbox mailbox_{5, [this] { ++wakes_; }};
  std::shared_ptr<ModelCounters> counters_ = std::make_shared<ModelCounters>("doubling", "1");
  CallStatistics statistics_;
  Metrics metrics_{statistics_};
  CallAlarms alarms_{[](CallId) {}};
  AnswerPath answer_path_;
  std::function<TimePoint()> now_ = [] { return TimePoint(); };
  std::deque<PendingCall::Shared> shared_;  // one for each call
  PayloadTable table_{5};
  KeepingSink sink_;
};

TEST_F(PayloadTableTest, TheFirstRefusalHasTheRowsCancelledOnce) {
  PendingCall& pending = table_.keep(pend(3));
  pending.complete({});
  EXPECT_EQ(wakes_, 0);
  pending.complete({.refusal = Refusal::kOverload});
  EXPECT_EQ(wakes_, 1);
  mailbox_.deliver();
  ASSERT_EQ(requests_.cancelled.size(), 3u);
  EXPECT_EQ(requests_.cancelled[2], RequestId(pending.handles()[2].value()));
  pending.cancel();
  EXPECT_EQ(requests_.cancelled.size(), 3u);
  EXPECT_TRUE(sink_.answers.empty());
  pending.complete({.refusal = Refusal::kCancelled});
  mailbox_.deliver();
  ASSERT_EQ(sink_.answers.size(), 1u);
  sink_.answers[0]->settle();
  EXPECT_EQ(sink_.answers[0]->error().reason, "overload");
  EXPECT_THAT(metrics_.text(), ::testing::HasSubstr("outcome=\"overload\"} 2"));
}

TEST_F(PayloadTableTest, HandlesLeadToRows) {
  const auto pending = pend(3);
  ASSERT_EQ(pending->handles().size(), 3u);
  EXPECT_EQ(table_.in_use(), 3u);
  EXPECT_EQ(table_.find(pending->handles()[2]).call, pending.get());
  EXPECT_EQ(table_.find(pending->handles()[2]).index, 2u);
  EXPECT_EQ(table_.input(pending->handles()[2], 0).data(), pending->call().input(2, 0).data());
  EXPECT_EQ(table_.output(pending->handles()[1], 0).data(), pending->call().output(1, 0).data());
}

TEST_F(PayloadTableTest, TakesAllRowsOrNone) {
  const auto first = pend(3);
  const auto second = pend(3);
  EXPECT_TRUE(second->handles().empty());
  EXPECT_EQ(table_.in_use(), 3u);
  const auto third = pend(2);
  EXPECT_EQ(third->handles().size(), 2u);
}

TEST_F(PayloadTableTest, AFullTableEvictsWhatCanWaitLongest) {
  PayloadTable table(512);
  std::vector<std::unique_ptr<PendingCall>> waiting;
  for (int i = 0; i < 112; ++i) waiting.push_back(pend(4, table));
  EXPECT_TRUE(pend(1, table)->handles().empty()) << "an eighth is kept";
  const auto urgent = pend(2, table, Duration::milliseconds(50));
  EXPECT_EQ(urgent->handles().size(), 2u);
  ASSERT_EQ(urgent->evicted().size(), 4u) << "a call is refused as a whole";
  EXPECT_TRUE(std::ranges::equal(urgent->evicted(), waiting.back()->handles()));
  EXPECT_EQ(table.in_use(), 450u) << "until the controller has refused it";
  EXPECT_EQ(pend(2, table)->handles().size(), 2u) << "which is room for two rows";
  waiting.pop_back();
  EXPECT_EQ(table.in_use(), 446u);
  EXPECT_TRUE(pend(3, table)->handles().empty()) << "and no more, as before";
}

TEST_F(PayloadTableTest, BodiesAreCountedToo) {
  PayloadTable table(512, 800);
  const auto waiting = pend(1, table, {}, 600);
  EXPECT_TRUE(pend(1, table, {}, 101)->handles().empty());
  const auto urgent = pend(1, table, Duration::milliseconds(50), 500);
  EXPECT_TRUE(std::ranges::equal(urgent->evicted(), waiting->handles()));
}

TEST_F(PayloadTableTest, AHandleIsNeverUsedTwice) {
  PayloadHandle old;
  {
    const auto pending = pend(1);
    old = pending->handles()[0];
  }
  EXPECT_EQ(table_.in_use(), 0u);
  const auto pending = pend(1);
  EXPECT_NE(pending->handles()[0], old);
  EXPECT_DEATH(table_.find(old), "");
}

TEST_F(PayloadTableTest, TheLastRowSendsTheAnswerToItsCaller) {
  PendingCall& pending = table_.keep(pend(2));
  const CallId id = pending.call_id();
  EXPECT_EQ(table_.find_call(PayloadHandle(id.value())), &pending);
  pending.complete(Completion{});
  EXPECT_EQ(wakes_, 0);
  pending.complete(Completion{});
  EXPECT_EQ(wakes_, 1);
  EXPECT_TRUE(sink_.calls.empty());
  mailbox_.deliver();
  EXPECT_EQ(sink_.calls, (std::vector<CallId>{id}));
  EXPECT_EQ(counters_->snapshot().success.count, 0u);
  sink_.answers.front()->settle();
  EXPECT_EQ(counters_->snapshot().inference_count, 2u);
  EXPECT_EQ(counters_->snapshot().success.count, 1u);
  EXPECT_EQ(table_.in_use(), 2u) << "until the answer is gone";
  sink_.answers.clear();
  EXPECT_EQ(table_.in_use(), 0u);
  EXPECT_EQ(table_.find_call(PayloadHandle(id.value())), nullptr);
}

TEST_F(PayloadTableTest, CallsThatAreNotAnsweredEndWithTheTable) {
  const auto tenant = std::make_shared<Tenant>("t");
  ASSERT_FALSE(tenant->enter(1, TimePoint()).has_value());
  {
    PayloadTable table(4);
    table.keep(pend(1, table, {}, 0, TenantLease(tenant, 1)));
    EXPECT_EQ(tenant->statistics().in_flight, 1u);
  }
  EXPECT_EQ(tenant->statistics().in_flight, 0u);
}

}  // namespace
}  // namespace foliot
