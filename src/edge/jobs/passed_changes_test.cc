#include "edge/jobs/passed_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foliot {
namespace {

TimePoint second(int64_t seconds) { return TimePoint() + Duration::seconds(seconds); }

class PassedChangesTest : public testing::Test {
 protected:
  Status add(const std::string& id, TimePoint give_up = second(10)) {
    return waiting_.add(
        {.id = id, .job = "j"}, [this, id](const Result<Job>&) { finished_.push_back(id); }, give_up);
  }
  static std::vector<std::string> ids(const std::vector<PassedChanges::Change>& changes) {
    std::vector<std::string> all;
    for (const PassedChanges::Change& change : changes) all.push_back(change.id);
    return all;
  }

  std::vector<std::string> finished_;
  PassedChanges waiting_;
};

TEST_F(PassedChangesTest, ArePassedAndThenFinishedOnce) {
  ASSERT_TRUE(add("a").ok());
  ASSERT_TRUE(add("b", second(5)).ok());
  EXPECT_TRUE(waiting_.has_unpassed());
  waiting_.set_passed("a");
  EXPECT_THAT(ids(waiting_.unpassed()), testing::ElementsAre("b"));
  EXPECT_THAT(ids(waiting_.passed()), testing::ElementsAre("a"));
  EXPECT_THAT(ids(waiting_.overdue(second(4))), testing::IsEmpty());
  EXPECT_THAT(ids(waiting_.overdue(second(5))), testing::ElementsAre("b"));
  for (int i = 0; i < 2; ++i) waiting_.finish("a", Status::unavailable("x"));
  waiting_.finish("b", Status::unavailable("x"));
  EXPECT_THAT(finished_, testing::ElementsAre("a", "b"));
  EXPECT_TRUE(waiting_.is_empty());
  waiting_.set_passed("a");
}

TEST_F(PassedChangesTest, AreBounded) {
  for (size_t i = 0; i < PassedChanges::kWaitingMax; ++i) ASSERT_TRUE(add(std::to_string(i)).ok());
  EXPECT_EQ(add("another").code(), StatusCode::kUnavailable);
  EXPECT_THAT(finished_, testing::IsEmpty());
  waiting_.finish("0", Status::unavailable("x"));
  EXPECT_TRUE(add("another").ok());
}

}  // namespace
}  // namespace foliot
