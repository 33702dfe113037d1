#include "observe/request_log/explanation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "foundation/core/stage_visit.h"
#include "observe/request_log/test_history.h"

namespace foliot {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string explain_in(const History& history, uint64_t request) {
  const Log log = log_of(history);
  return explain(log, *log.request(RequestId(request)));
}

TEST(Explanation, ReportsWhatItsClientCallsIt) {
  History history;
  history.load(1, kWarm, 0, 0, 5);
  history.request(1, kWarm, 10, 60, call_label("it's\n17"));
  history.request(2, kWarm, 10, 60, call_label(std::string(100, 'a')));
  history.request(3, kWarm, 10, 60);
  history.infer(2, kWarm, {1, 2, 3}, 10, 12, 15);
  for (uint64_t id = 1; id <= 3; ++id) history.served(id, 2, 15);
  EXPECT_THAT(explain_in(history, 1), HasSubstr("\n\nIts client calls it 'it\\'s\\x0a17'.\n"));
  EXPECT_THAT(explain_in(history, 2), HasSubstr("aaaa' (the first 64 of 100 bytes).\n"));
  EXPECT_THAT(explain_in(history, 3), Not(HasSubstr("client")));
}

TEST(Explanation, NamesTaskAndVariant) {
  History history;
  history.task(ServedTaskId(3), "photos");
  history.load(1, kWarm, 0, 0, 5);
  history.add({.id = RequestId(1), .model = kWarm, .task = ServedTaskId(3), .arrival = at(10), .deadline = at(60)});
  history.request(2, kWarm, 10, 60);
  history.infer(2, kWarm, {1, 2}, 10, 12, 15);
  for (uint64_t id = 1; id <= 2; ++id) history.served(id, 2, 15);
  EXPECT_THAT(explain_in(history, 1), StartsWith("Request 1 of task 'photos' (variant 'warm') was answered after"));
  EXPECT_THAT(explain_in(history, 2), StartsWith("Request 2 of model 'warm' was answered after"));
}

TEST(Explanation, SaysWhichApplicationAskedAndWhy) {
  History history;
  history.load(1, kWarm, 0, 0, 5);
  history.request(1, kWarm, 10, 60, call_label("", "application 'a' (policy exp3), which asks 'm'"));
  history.infer(2, kWarm, {1}, 10, 12, 15);
  history.served(1, 2, 15);
  EXPECT_THAT(explain_in(history, 1),
              HasSubstr("\n\nIt was asked by application 'a' (policy exp3), which asks 'm'.\n"));
  EXPECT_THAT(explain_in(history, 1), Not(HasSubstr("client")));
}

TEST(Explanation, OfAColdRequestInABatch) {
  History history;
  history.load(1, kWarm, 0, 0, 5);
  history.request(3, kWarm, 9, 60);
  history.request(1, kCold, 10, 60);
  history.request(2, kCold, 10, 60);
  history.infer(2, kWarm, {3}, 10, 12, 15);
  history.served(3, 2, 15);
  history.unload(3, kWarm, 16);
  history.load(4, kCold, 16, 17, 29);
  history.infer(5, kCold, {1, 2}, 29, 30, 44);
  history.served(1, 5, 44);
  history.served(2, 5, 44);
  EXPECT_EQ(explain_in(history, 1),
            "Request 1 of model 'cold' was answered after 34.00 ms, 16.00 ms before its deadline of 50.00 ms.\n\n"
            "It arrived 0.010000 s into the log, when 1 other request was queued. Its model was not loaded: a cold "
            "start.\n"
            "It waited for LOAD 4 of its model to device 0, which was sent at +6.00 ms and ran from +7.00 ms to "
            "+19.00 ms: 12.00 ms, 2.00 ms longer than expected; it evicted 'warm'.\n"
            "At +19.00 ms INFER 5 was sent to device 0, with it and 1 other in a batch of size 2; no requests stayed "
            "behind in the queue.\n"
            "Until its EXEC began the device executed 1 other batch, none of its model, for 3.00 ms.\n"
            "EXEC began at +20.00 ms (1.00 ms later than expected) and took 14.00 ms: 10.00 ms were predicted, so it "
            "was 4.00 ms longer than expected.\n\n"
            "Where the time went:\n"
            "      19.00 ms  queued, before it was sent to a device\n"
            "        12.00 ms  while its model was loaded\n"
            "         3.00 ms  while the device executed other batches\n"
            "         4.00 ms  while the LOAD of its model had not begun\n"
            "       1.00 ms  on the device, until EXEC began\n"
            "         0.10 ms  while its INPUT ran\n"
            "         0.90 ms  while it was on its way: the link, and the executor that woke up\n"
            "      14.00 ms  EXEC\n"
            "       0.00 ms  OUTPUT\n"
            "      34.00 ms  in all\n");
}

TEST(Explanation, NamesLanesWhereThereAreSeveral) {
  History history;
  for (uint64_t id = 1; id <= 2; ++id) history.request(id, kWarm, 10, 60);
  history.send_infer(1, kWarm, {1}, 12, {0, 1});
  history.infer_done(1, 12, 22);
  history.served(1, 1, 23);
  EXPECT_THAT(explain_in(history, 1), HasSubstr("INFER 1 was sent to device 0, with it alone"));
  history.send_infer(2, kWarm, {2}, 23, {0, 2});
  history.infer_done(2, 23, 30);
  history.served(2, 2, 31);
  EXPECT_THAT(explain_in(history, 1), HasSubstr("INFER 1 was sent to device 0, lane 0, with it alone"));
  EXPECT_THAT(explain_in(history, 2), HasSubstr("INFER 2 was sent to device 0, lanes 0 to 1, with it alone"));
}

TEST(Explanation, OfARefusalSaysWhyAndWhatWasPredicted) {
  History history;
  history.request(1, kWarm, 10, 20);
  history.refused(1, Refusal::kUnmeetable, 10, 35);
  const std::string text = explain_in(history, 1);
  EXPECT_THAT(text, StartsWith("Request 1 of model 'warm' was refused after 0.00 ms (unmeetable), 10.00 ms before its "
                               "deadline of 10.00 ms.\n"));
  EXPECT_THAT(text, HasSubstr("No LOAD of its model was under way."));
  EXPECT_THAT(text,
              HasSubstr("It was refused because even alone on an idle device it would have missed its deadline: "
                        "its answer was predicted for +25.00 ms at the earliest, 15.00 ms after its deadline.\n"));
  EXPECT_THAT(text, Not(HasSubstr("Where the time went")));
}

TEST(Explanation, OfATaskThatNoVariantSatisfiesSaysSoAndNotThatTimeWasShort) {
  History history;
  history.task(ServedTaskId(3), "photos");
  for (uint64_t id = 1; id <= 2; ++id) {
    history.add({.id = RequestId(id), .model = kWarm, .task = ServedTaskId(3), .arrival = at(10), .deadline = at(60)});
  }
  history.refused(1, Refusal::kUnmeetable, 10, 0, UnmetRequirement::kCost);
  history.refused(2, Refusal::kUnmeetable, 10, 0, UnmetRequirement::kAccuracy);
  EXPECT_THAT(explain_in(history, 1), HasSubstr("no variant of task 'photos' that is as accurate as it asked for costs "
                                                "as little as it asked for; its time was not the reason.\n"));
  EXPECT_THAT(explain_in(history, 2), HasSubstr("no variant of task 'photos' that is served is as accurate as it asked "
                                                "for; its time was not the reason.\n"));
  for (uint64_t id = 1; id <= 2; ++id) EXPECT_THAT(explain_in(history, id), Not(HasSubstr("idle device")));
}

TEST(Explanation, OfOneThatExpiredSaysWhatRanInstead) {
  History history;
  history.load(1, kWarm, 0, 0, 5);
  history.request(1, kWarm, 10, 20);
  history.request(2, kWarm, 10, 20);
  history.infer(2, kWarm, {2}, 10, 10, 22);
  history.served(2, 2, 22);
  history.refused(1, Refusal::kExpired, 20);
  const std::string text = explain_in(history, 1);
  EXPECT_THAT(text, HasSubstr("In that time 1 batch was executed, 1 of its model, for 10.00 ms in all.\n"));
  EXPECT_THAT(text, HasSubstr("It was refused because its time ran out while it waited.\n"));
}

TEST(Explanation, OfOneThatWaitedBesideAnIdleDeviceSaysForHowLongAndWhy) {
  History history;
  history.load(1, kWarm, 0, 0, 5);
  history.load(2, kCold, 5, 5, 9);
  history.request(1, kWarm, 10, 200);
  history.request(2, kCold, 20, 60);
  history.infer(3, kCold, {2}, 20, 20, 50);
  history.served(2, 3, 50);
  history.refused(1, Refusal::kExpired, 110);
  const std::string text = explain_in(history, 1);
  EXPECT_THAT(text, HasSubstr("In that time 1 batch was executed, none of its model, for 30.00 ms in all.\n"
                              "For 70.00 ms of that time device 0 had its model and executed nothing: the policy held "
                              "its batch back, for more rows (batch_delay) or for requests with less time, or what was "
                              "measured let no answer in time be expected.\n"));
}

TEST(Explanation, OfABatchThatWaitedForMoreRowsSaysHowManyCame) {
  History history;
  history.load(1, kWarm, 0, 0, 5);
  history.request(1, kWarm, 10, 60);
  history.request(2, kWarm, 12, 60);
  history.request(3, kWarm, 13, 60);
  history.infer(2, kWarm, {1, 2, 3}, 14, 15, 20);
  for (uint64_t id = 1; id <= 3; ++id) history.served(id, 2, 20);
  EXPECT_THAT(
      explain_in(history, 1),
      HasSubstr("For 4.00 ms before it was sent, the device had its model and executed nothing: the policy held "
                "its batch back, for more rows (batch_delay) or for requests with less time; 2 requests of its "
                "batch came after it.\n"));
  EXPECT_THAT(explain_in(history, 3), HasSubstr("; no requests of its batch came after it.\n"));
}

TEST(Explanation, OfADeviceWithoutItsModelDoesNotSayThatItWasIdle) {
  History history;
  history.load(1, kWarm, 0, 0, 5);
  history.unload(2, kWarm, 8);
  history.request(1, kWarm, 10, 60);
  history.load(3, kWarm, 10, 10, 40);
  history.infer(4, kWarm, {1}, 40, 40, 45);
  history.served(1, 4, 45);
  EXPECT_THAT(explain_in(history, 1), Not(HasSubstr("executed nothing")));
}

TEST(Explanation, OfALoadThatDidNotEndInTime) {
  History history;
  history.request(1, kCold, 10, 20);
  history.send_load(7, kCold, 11);
  history.refused(1, Refusal::kExpired, 20);
  EXPECT_THAT(explain_in(history, 1), HasSubstr("It waited for LOAD 7 of its model, of which the log has no outcome."));
}

TEST(Explanation, OfOneWhoseActionTheWorkerRefused) {
  History history;
  history.load(1, kWarm, 0, 0, 5);
  history.request(1, kWarm, 10, 90);
  history.infer_refused(2, kWarm, {1}, 11, OutcomeStatus::kTooLate, 45);
  history.infer(3, kWarm, {1}, 46, 46, 56);
  history.served(1, 3, 56);
  EXPECT_THAT(explain_in(history, 1),
              HasSubstr("INFER 2 was to carry it on device 0, and was refused at +35.00 ms (too late): EXEC was "
                        "expected at +1.00 ms and had to begin by +31.00 ms. It went back into the queue.\n"));
}

TEST(Explanation, OfABatchThatRanInPartsLeavesNoTimeOut) {
  History history;
  history.load(1, kWarm, 0, 0, 5);
  history.request(1, kWarm, 10, 100);
  history.infer(2, kWarm, {1}, 12, 13, 17);
  history.infer(3, kWarm, {1}, 22, 23, 30);
  history.served_in_parts(1, 2, 3, 31);
  const std::string said = explain_in(history, 1);
  EXPECT_THAT(said, HasSubstr("ran in parts and took 11.00 ms"));
  EXPECT_THAT(said, HasSubstr("   3.00 ms  queued, before it was sent to a device"));
  EXPECT_THAT(said, HasSubstr("  11.00 ms  EXEC, in parts\n"));
  EXPECT_THAT(said, HasSubstr("   6.00 ms  between the parts, when others ran\n"));
}

TEST(Explanation, SaysWhatItWaitedForOnTheDevice) {
  History history;
  history.load(1, kWarm, 0, 0, 5);
  history.request(1, kWarm, 10, 60);
  history.request(2, kWarm, 12, 60);
  history.infer(2, kWarm, {1}, 10, 11, 20);
  history.infer(3, kWarm, {2}, 15, 20, 25);
  history.served(1, 2, 20);
  history.served(2, 3, 26);
  EXPECT_THAT(explain_in(history, 2), HasSubstr("       3.00 ms  queued, before it was sent to a device\n"
                                                "         3.00 ms  while the device executed other batches\n"
                                                "       5.00 ms  on the device, until EXEC began\n"
                                                "         5.00 ms  while the device executed other batches\n"
                                                "       5.00 ms  EXEC\n"
                                                "       0.05 ms  OUTPUT\n"
                                                "       0.95 ms  until the controller knew of it\n"
                                                "      14.00 ms  in all\n"));
}

TEST(Explanation, OfALateAnswer) {
  History history;
  history.load(1, kWarm, 0, 0, 5);
  history.request(1, kWarm, 10, 20);
  history.infer(2, kWarm, {1}, 10, 10, 25);
  history.late(1, 2, 25);
  const std::string text = explain_in(history, 1);
  EXPECT_THAT(text, StartsWith("Request 1 of model 'warm' was answered too late, after 15.00 ms, 5.00 ms after its "
                               "deadline of 10.00 ms.\n"));
  EXPECT_THAT(text, HasSubstr("Its answer came after its deadline, and counts as none.\n"));
  EXPECT_THAT(text, HasSubstr("15.00 ms  EXEC\n"));
}

TEST(Explanation, OfARunNamesTheVisitsOfItsStages) {
  History history;
  const uint64_t first = visit_of(RequestId(7), 0).value();
  const uint64_t second = visit_of(RequestId(7), 1).value();
  history.run(7, 10, 60);
  history.request(first, kWarm, 10, 60);
  history.infer(1, kWarm, {first}, 10, 12, 15);
  history.served(first, 1, 16);
  history.request(second, kCold, 16, 60);
  history.refused(second, Refusal::kExpired, 58);
  history.run_over(7, 58, Refusal::kExpired);
  // A request with such an id, and another deadline.
  history.request(visit_of(RequestId(7), 2).value(), kWarm, 10, 61);
  history.refused(visit_of(RequestId(7), 2).value(), Refusal::kExpired, 20);
  EXPECT_EQ(explain_in(history, 7),
            "Request 7 of model 'street' was refused after 48.00 ms (expired), 2.00 ms before its deadline of 50.00 "
            "ms.\n\n"
            "It is a run of a pipeline, which arrived 0.010000 s into the log. Its visits of stages, each a request of "
            "its own:\n"
            "  visit 1 (model 'warm', request 16777223): began at +0.00 ms, waited 2.00 ms, EXEC 3.00 ms in a batch of "
            "1, over at +6.00 ms\n"
            "  visit 2 (model 'cold', request 33554439): began at +6.00 ms, was refused at +48.00 ms (expired)\n"
            "It was refused because its time ran out while it waited.\n");
}

}  // namespace
}  // namespace foliot
