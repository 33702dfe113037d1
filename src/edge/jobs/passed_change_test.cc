#include "edge/jobs/passed_change.h"

#include <gtest/gtest.h>

namespace foliot {
namespace {

TEST(PassedChange, ASubmissionAndACancellationArriveAsTheyWere) {
  const PassedChange submission{
      .id = "1",
      .request = JobRequest{.kind = "offline", .owner = "k \"é\"", .request = R"({"a":1})", .webhook = "http://h/"}};
  const Result<PassedChange> got = passed_change_from_json(to_json(submission));
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ(got->id, "1");
  ASSERT_TRUE(got->request);
  EXPECT_EQ(got->request->kind, "offline");
  EXPECT_EQ(got->request->owner, "k \"é\"");
  EXPECT_EQ(got->request->request, R"({"a":1})");
  EXPECT_EQ(got->request->webhook, "http://h/");
  const Result<PassedChange> cancellation = passed_change_from_json(to_json(PassedChange{.id = "2", .job = "j"}));
  ASSERT_TRUE(cancellation.ok());
  EXPECT_FALSE(cancellation->request);
  EXPECT_EQ(cancellation->job, "j");
}

TEST(PassedChange, WhatIsNoneIsNamed) {
  for (const char* wrong :
       {"", "{", "[]", "{}", R"({"id":1})", R"({"id":"1","kind":"x"})", R"({"id":"1","cancel":2})"}) {
    EXPECT_EQ(passed_change_from_json(wrong).status().code(), StatusCode::kInvalidArgument) << wrong;
  }
}

TEST(PassedChange, AnswersKeepTheirCodes) {
  const Job job{.id = "a", .number = 3, .kind = "offline", .request = "{}"};
  ASSERT_TRUE(answer_from_json(answer_json(job)).ok());
  EXPECT_EQ(*answer_from_json(answer_json(job)), job);
  for (const Status& status :
       {Status::invalid_argument("a"), Status::not_found("b"), Status::already_exists("c"),
        Status::resource_exhausted("d"), Status::unimplemented("e"), Status::unavailable("f"), Status::internal("g")}) {
    const Result<Job> answer = answer_from_json(answer_json(status));
    EXPECT_EQ(answer.status().code(), status.code());
    EXPECT_EQ(answer.status().message(), status.message());
  }
  for (const char* wrong : {"", "{}", R"({"refused":7})", R"({"refused":"x","message":1})"}) {
    EXPECT_EQ(answer_from_json(wrong).status().code(), StatusCode::kInternal) << wrong;
  }
}

}  // namespace
}  // namespace foliot
