#include "answer/inference/call_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foliot {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const TimePoint kArrival = TimePoint() + Duration::seconds(100);

CallError refused(Refusal refusal, TimePoint earliest = {}) {
  return call_error(refusal, "m", "three ahead", kArrival, kArrival + Duration::milliseconds(1), earliest);
}

TEST(CallErrorTest, EachRefusalHasItsStatus) {
  const auto expect = [](Refusal refusal, unsigned http_status, GrpcCode code) {
    EXPECT_EQ(refused(refusal).http_status, http_status) << to_string(refusal);
    EXPECT_EQ(refused(refusal).grpc_code, code) << to_string(refusal);
    const bool may_be_tried_again = (http_status == 503 || http_status == 429) && refusal != Refusal::kUnmeetable;
    EXPECT_EQ(refused(refusal).retry_after.has_value(), may_be_tried_again) << to_string(refusal);
    EXPECT_EQ(refused(refusal).reason, to_string(refusal));
  };
  expect(Refusal::kUnmeetable, 503, GrpcCode::kUnavailable);
  expect(Refusal::kOverload, 503, GrpcCode::kResourceExhausted);
  expect(Refusal::kOverShare, 429, GrpcCode::kResourceExhausted);
  expect(Refusal::kModelError, 500, GrpcCode::kInternal);
  expect(Refusal::kWorkerLost, 503, GrpcCode::kUnavailable);
  expect(Refusal::kUnloaded, 503, GrpcCode::kUnavailable);
  expect(Refusal::kDraining, 503, GrpcCode::kUnavailable);
  expect(Refusal::kExpired, 504, GrpcCode::kDeadlineExceeded);
  expect(Refusal::kLate, 504, GrpcCode::kDeadlineExceeded);
}

TEST(CallErrorTest, HasTheEarliestCompletionPredicted) {
  const CallError error = refused(Refusal::kUnmeetable, kArrival + Duration::microseconds(12'345));
  EXPECT_EQ(error.earliest_completion, Duration::microseconds(12'345));
  EXPECT_THAT(error.message, HasSubstr("unmeetable: three ahead"));
  EXPECT_EQ(error.reason, "unmeetable");
}

TEST(CallErrorTest, NamesTheDeadlineAndWhatItComesFrom) {
  const auto message = [](Refusal refusal, Duration after, DeadlineOrigin origin) {
    const AppliedDeadline deadline{.at = kArrival + after, .origin = origin};
    return call_error(refusal, "m", "", kArrival, kArrival, kArrival + Duration::milliseconds(4), deadline).message;
  };
  EXPECT_EQ(
      message(Refusal::kUnmeetable, Duration::microseconds(30), DeadlineOrigin::kTimeout),
      "model 'm' refused the request: unmeetable; its deadline was 0.030 ms after arrival (parameter 'timeout', in "
      "microseconds); earliest completion 4.000 ms after arrival");
  EXPECT_THAT(message(Refusal::kExpired, Duration::milliseconds(3), DeadlineOrigin::kGrpcCall),
              HasSubstr("its deadline was 3.000 ms after arrival (deadline of the gRPC call);"));
  EXPECT_THAT(message(Refusal::kLate, Duration::milliseconds(3), DeadlineOrigin::kDefaultSlo),
              HasSubstr("its deadline was 3.000 ms after arrival (default_slo);"));
  EXPECT_THAT(message(Refusal::kDraining, Duration::milliseconds(3), DeadlineOrigin::kTimeout),
              Not(HasSubstr("deadline")));
  EXPECT_THAT(refused(Refusal::kUnmeetable).message, Not(HasSubstr("deadline"))) << "there is none";
}

TEST(CallErrorTest, RetryAfterIsInWholeSecondsFromNow) {
  EXPECT_EQ(retry_after_seconds(Duration()), 1);
  EXPECT_EQ(retry_after_seconds(Duration::milliseconds(900)), 1);
  EXPECT_EQ(retry_after_seconds(Duration::milliseconds(1001)), 2);
  EXPECT_EQ(refused(Refusal::kOverload, kArrival + Duration::seconds(5)).retry_after, Duration::milliseconds(4999));
}

TEST(CallErrorTest, EachStatusHasItsCode) {
  EXPECT_EQ(call_error(Status::invalid_argument("x")).http_status, 400u);
  EXPECT_EQ(call_error(Status::not_found("x")).http_status, 404u);
  EXPECT_EQ(call_error(Status::unimplemented("x")).grpc_code, GrpcCode::kUnimplemented);
  EXPECT_TRUE(call_error(Status::unavailable("x")).retry_after.has_value());
}

}  // namespace
}  // namespace foliot
