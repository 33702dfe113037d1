#include "edge/jobs/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foliot {
namespace {

using ::testing::HasSubstr;

TEST(Job, ItsJsonHasAllOfIt) {
  Job job{.id = "a1",
          .number = 7,
          .kind = "offline",
          .owner = "mobile-app",
          .request = R"({"task":"digits","inputs":{"x":"rows.npy"}})",
          .inputs = "x=rows.npy:5",
          .state = JobState::kFailed,
          .done = 3,
          .total = 9,
          .variants = {{"large", 1}, {"small", 2}},
          .bytes = 4096,
          .accuracies = {{"large", 0.9}},
          .waiting = "busy",
          .error = "a \"quoted\" reason",
          .cancel_requested = true,
          .starts = 2,
          .created = TimePoint() + Duration::milliseconds(1000),
          .started = TimePoint() + Duration::milliseconds(2000),
          .ended = TimePoint() + Duration::milliseconds(3000),
          .webhook = JobWebhook{.url = "http://x/",
                                .state = JobWebhook::State::kFailed,
                                .tries = 4,
                                .error = "refused",
                                .next_try = TimePoint() + Duration::milliseconds(4000)}};
  const Result<Job> read = job_from_json(to_json(job));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, job);
  job = {.id = "b", .number = 1, .kind = "k", .request = "{}"};
  EXPECT_EQ(*job_from_json(to_json(job)), job);
}

TEST(Job, WhatIsNoJobIsAnError) {
  for (const char* text : {"", "[]", "{}", R"({"id":"a","number":1,"kind":"k","state":"lost"})", R"({"id":5})"}) {
    EXPECT_EQ(job_from_json(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
}

TEST(Job, ARequestIsDividedByWhatTheKindDecidesOn) {
  const Result<JobRequest> request =
      parse_job_request(R"({"kind":"offline","model":"m","webhook":"http://h/","output":"o"})");
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->kind, "offline");
  EXPECT_EQ(request->webhook, "http://h/");
  EXPECT_EQ(request->request, R"({"model":"m","output":"o"})");
}

TEST(Job, WrongRequestsAreNamed) {
  const auto error = [](std::string_view body) { return parse_job_request(body).status().message(); };
  EXPECT_THAT(error("nonsense"), HasSubstr("must be a JSON object"));
  EXPECT_THAT(error("{}"), HasSubstr("'kind' is missing"));
  EXPECT_THAT(error(R"({"kind":7})"), HasSubstr("'kind' must be a text"));
  EXPECT_THAT(error(R"({"kind":"offline","webhook":[]})"), HasSubstr("'webhook' must be a text"));
  EXPECT_THAT(error(std::string(kJobRequestBytesMax + 1, ' ')), HasSubstr("at most 16384"));
}

}  // namespace
}  // namespace foliot
