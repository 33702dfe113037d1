#include "observe/request_log/recorder.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "observe/request_log/test_history.h"

namespace foliot {
namespace {

TEST(Recorder, JoinsARequestWithItsActionAndItsLoad) {
  History history;
  history.request(1, kCold, 10, 60);
  history.load(1, kCold, 11, 12, 22);
  history.infer(2, kCold, {1}, 12, 22, 32);
  history.served(1, 2, 33);

  ASSERT_EQ(history.requests().size(), 1u);
  const RequestRecord& request = history.requests()[0];
  EXPECT_EQ(request.model, "cold");
  EXPECT_TRUE(request.cold_start);
  EXPECT_EQ(request.slo, Duration::milliseconds(50));
  EXPECT_EQ(request.load, ActionId(1));
  EXPECT_EQ(request.action, ActionId(2));
  EXPECT_EQ(request.device, DeviceId(0));
  EXPECT_EQ(request.exec_start, at(22));
  EXPECT_EQ(request.exec_duration, Duration::milliseconds(10));
  EXPECT_EQ(request.latency(), Duration::milliseconds(23));

  ASSERT_EQ(history.actions().size(), 2u);
  const ActionRecord& infer = history.actions()[1];
  EXPECT_EQ(infer.type, ActionType::kInfer);
  EXPECT_EQ(infer.rows, 1u);
  EXPECT_EQ(infer.requests[0], RequestId(1));
  EXPECT_EQ(infer.sent, at(12));
}

// Each takes 10 ms as expected. What takes both lanes waits for the later one, and what follows it for both.
TEST(Recorder, LanesExecuteAtOnce) {
  History history;
  for (uint64_t id = 1; id <= 5; ++id) history.request(id, kWarm, 10, 100);
  history.send_infer(1, kWarm, {1}, 10, {0, 1});
  history.send_infer(2, kWarm, {2}, 14, {1, 1});
  history.send_infer(3, kWarm, {3}, 15, {0, 2});
  history.infer_done(1, 10, 20);
  history.infer_done(2, 14, 24);
  history.send_infer(4, kWarm, {4}, 26, {1, 1});
  history.infer_done(3, 24, 34);
  history.infer_done(4, 34, 44);
  ASSERT_EQ(history.actions().size(), 4u);
  EXPECT_EQ(history.actions()[1].expected_start, at(14));
  EXPECT_EQ(history.actions()[2].expected_start, at(24));
  EXPECT_EQ(history.actions()[2].lanes, (LaneInterval{0, 2}));
  EXPECT_EQ(history.actions()[3].expected_start, at(34));
}

TEST(Recorder, KeepsTheKindOfTheDevice) {
  History history;
  history.load(1, kWarm, 1, 2, 3);
  history.join("cpu:4", 4);
  history.load(2, kWarm, 5, 6, 7);
  ASSERT_EQ(history.actions().size(), 2u);
  EXPECT_EQ(history.actions()[0].kind, kDefaultKind);
  EXPECT_EQ(history.actions()[1].kind, "cpu:4");
}

TEST(Recorder, ALabelIsOfTheRequestThatComesWithIt) {
  History history;
  history.request(1, kWarm, 10, 60);
  history.request(2, kWarm, 11, 60, call_label("order-17"));
  history.request(3, kWarm, 12, 60);
  for (uint64_t id = 1; id <= 3; ++id) history.refused(id, Refusal::kOverload, 20);
  EXPECT_EQ(history.request_of(1).label, nullptr);
  ASSERT_NE(history.request_of(2).label, nullptr);
  EXPECT_EQ(history.request_of(2).label->text, "order-17");
  EXPECT_EQ(history.request_of(3).label, nullptr);
}

TEST(Recorder, KeepsTheClass) {
  History history;
  history.add({.id = RequestId(1), .model = kWarm, .arrival = at(1), .deadline = at(60)});
  history.add({.id = RequestId(2), .model = kWarm, .arrival = at(1)});
  history.add({.id = RequestId(3), .model = kWarm, .arrival = at(1), .offline = true});
  for (uint64_t id = 1; id <= 3; ++id) history.refused(id, Refusal::kOverload, 20);
  EXPECT_EQ(history.request_of(1).request_class, RequestClass::kDeadline);
  EXPECT_EQ(history.request_of(2).request_class, RequestClass::kBestEffort);
  EXPECT_EQ(history.request_of(3).request_class, RequestClass::kOffline);
}

TEST(Recorder, AWarmRequestWaitsForNoLoad) {
  History history;
  history.load(1, kWarm, 0, 0, 5);
  history.request(1, kWarm, 10, 60);
  history.infer(2, kWarm, {1}, 10, 10, 20);
  history.served(1, 2, 20);
  EXPECT_FALSE(history.requests()[0].cold_start);
  EXPECT_EQ(history.requests()[0].load, std::nullopt);
}

TEST(Recorder, AModelThatWasUnloadedIsCold) {
  History history;
  history.load(1, kWarm, 0, 0, 5);
  history.unload(2, kWarm, 6);
  history.request(1, kWarm, 10, 60);
  history.refused(1, Refusal::kUnmeetable, 10);
  EXPECT_TRUE(history.requests()[0].cold_start);
}

TEST(Recorder, CountsTheQueue) {
  History history;
  for (uint64_t id = 1; id <= 3; ++id) history.request(id, kWarm, 10, 60);
  history.infer(1, kWarm, {1, 2}, 11, 11, 20);
  history.request(4, kWarm, 12, 60);
  history.refused(3, Refusal::kExpired, 13);
  history.request(5, kWarm, 14, 60);
  history.refused(4, Refusal::kExpired, 15);
  history.refused(5, Refusal::kExpired, 15);
  history.served(1, 1, 21);
  history.served(2, 1, 21);

  EXPECT_EQ(history.request_of(1).queue_length, 0u);
  EXPECT_EQ(history.request_of(3).queue_length, 2u);
  EXPECT_EQ(history.request_of(4).queue_length, 1u);
  EXPECT_EQ(history.request_of(5).queue_length, 1u);
  EXPECT_EQ(history.actions()[0].queue_length, 1u);
}

TEST(Recorder, CountsRequestsThatCameBack) {
  History history;
  history.request(1, kWarm, 10, 60);
  history.infer_refused(1, kWarm, {1}, 11, OutcomeStatus::kTooLate, 15);
  history.request(2, kWarm, 16, 60);
  history.infer(2, kWarm, {1, 2}, 17, 17, 27);
  history.served(1, 2, 27);
  history.served(2, 2, 27);
  EXPECT_EQ(history.request_of(1).returns, 1u);
  EXPECT_EQ(history.request_of(1).action, ActionId(2));
  EXPECT_EQ(history.request_of(2).queue_length, 1u);
  EXPECT_EQ(history.actions()[0].status, OutcomeStatus::kTooLate);
}

TEST(Recorder, ExpectsAnExecutorToTakeOneActionAfterTheOther) {
  History history;
  history.request(1, kWarm, 10, 90);
  history.request(2, kWarm, 10, 90);
  history.request(3, kWarm, 10, 90);
  history.send_infer(1, kWarm, {1}, 11);
  history.send_infer(2, kWarm, {2}, 12);
  // The first takes 5 ms longer than the kExpected that it was given.
  history.infer_done(1, 11, 26);
  history.send_infer(3, kWarm, {3}, 27);
  history.infer_done(2, 26, 36);
  history.infer_done(3, 36, 46);
  EXPECT_EQ(history.actions()[0].expected_start, at(11));
  EXPECT_EQ(history.actions()[0].expected_end, at(21));
  EXPECT_EQ(history.actions()[1].expected_start, at(21));
  EXPECT_EQ(history.actions()[2].expected_start, at(36));
}

TEST(Recorder, ARefusedColdRequestNamesTheLoadUnderWay) {
  History history;
  history.request(1, kCold, 10, 20);
  history.send_load(7, kCold, 11);
  history.refused(1, Refusal::kExpired, 20);
  EXPECT_EQ(history.requests()[0].load, ActionId(7));
  EXPECT_EQ(history.requests()[0].action, std::nullopt);
}

}  // namespace
}  // namespace foliot
