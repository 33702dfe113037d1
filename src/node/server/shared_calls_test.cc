#include "node/server/shared_calls.h"

#include <gtest/gtest.h>

namespace foliot {
namespace {

TEST(SharedCallsTest, CallsArriveAsTheyLeft) {
  const SharedCall call{.method = SharedMethod::kObserve,
                        .k = 4,
                        .items = {1, 2},
                        .observations = {{.user = 9, .item = 3, .value = 4.5, .id = 5, .query = 6}}};
  const WireBytes bytes = encode(call);
  const std::optional<SharedCall> read = decode_shared_call(9, bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->method, SharedMethod::kObserve);
  EXPECT_TRUE(read->changes());
  EXPECT_EQ(read->k, 4u);
  EXPECT_EQ(read->items, call.items);
  ASSERT_EQ(read->observations.size(), 1u);
  EXPECT_EQ(read->observations[0].user, 9u);
  EXPECT_EQ(read->observations[0].item, 3u);
  EXPECT_EQ(read->observations[0].value, 4.5);
  EXPECT_EQ(read->observations[0].id, 5u);
  EXPECT_EQ(read->observations[0].query, 6u);
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(decode_shared_call(9, std::span(bytes).first(length))) << length;
  }
}

TEST(SharedCallsTest, AnswersArriveAsTheyLeft) {
  PersonalAnswer answer{.version = "3", .predictions = {1.5F, 2.5F}};
  answer.lists = {{.query = 7, .slots = {{.item = 8, .score = 0.5F, .is_drawn = true, .probability = 0.25}}}};
  const std::optional<PersonalResult> read = decode_shared_result(encode(answer));
  ASSERT_TRUE(read);
  const auto& same = std::get<PersonalAnswer>(*read);
  EXPECT_EQ(same.version, "3");
  EXPECT_EQ(same.predictions, answer.predictions);
  ASSERT_EQ(same.lists.size(), 1u);
  EXPECT_EQ(same.lists[0].query, 7u);
  EXPECT_EQ(same.lists[0].slots[0].item, 8u);
  EXPECT_EQ(same.lists[0].slots[0].score, 0.5F);
  EXPECT_TRUE(same.lists[0].slots[0].is_drawn);
  EXPECT_EQ(same.lists[0].slots[0].probability, 0.25);
}

TEST(SharedCallsTest, ErrorsArriveAsTheyLeft) {
  CallError error{.http_status = 503, .grpc_code = GrpcCode::kUnavailable, .message = "later", .reason = "overload"};
  error.retry_after = Duration::seconds(2);
  const std::optional<PersonalResult> read = decode_shared_result(encode(error));
  ASSERT_TRUE(read);
  const auto& same = std::get<CallError>(*read);
  EXPECT_EQ(same.http_status, 503u);
  EXPECT_EQ(same.grpc_code, GrpcCode::kUnavailable);
  EXPECT_EQ(same.message, "later");
  EXPECT_EQ(same.reason, "overload");
  EXPECT_FALSE(same.earliest_completion);
  EXPECT_EQ(same.retry_after, Duration::seconds(2));
}

}  // namespace
}  // namespace foliot
