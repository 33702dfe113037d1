#include "answer/model_calls/answer_path.h"

#include <gtest/gtest.h>

namespace foliot {
namespace {

Duration us(int64_t n) { return Duration::microseconds(n); }
TimePoint at(int64_t ms) { return TimePoint() + Duration::milliseconds(ms); }

TEST(AnswerPathTest, FollowsWhatWasMeasured) {
  AnswerPath path;
  EXPECT_GT(path.length(), us(100));
  EXPECT_LT(path.length(), us(1000));
  for (int64_t i = 0; i < 200; ++i) path.record(us(20), true, at(i));
  EXPECT_LT(path.length(), us(30));
  for (int64_t i = 0; i < 3; ++i) path.record(us(2000), true, at(200 + i));
  EXPECT_GE(path.length(), us(2000));
}

TEST(AnswerPathTest, RefusalsCountWhereNothingIsServed) {
  AnswerPath path;
  for (int64_t i = 0; i < 200; ++i) path.record(us(2000), true, at(i));
  for (int64_t i = 0; i < 100; ++i) path.record(us(10), false, at(200 + i));
  EXPECT_GE(path.length(), us(2000));
  for (int64_t i = 0; i < 2000; ++i) path.record(us(10), false, at(2000 + i));
  EXPECT_LT(path.length(), us(30));
}

}  // namespace
}  // namespace foliot
