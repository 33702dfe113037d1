#include "answer/personal/storage/waiting_changes.h"

#include <gtest/gtest.h>

#include <vector>

namespace foliot {
namespace {

UserChange change_of(uint64_t user, size_t observations) {
  return {.user = user, .observations = std::vector<UserObservation>(observations)};
}

TEST(WaitingChanges, CountsWhatWaitsOfEachUser) {
  WaitingChanges waiting;
  EXPECT_TRUE(waiting.empty());
  waiting.push(change_of(1, 2), true);
  waiting.push(change_of(2, 3), false);
  waiting.push(change_of(2, 4), false);
  EXPECT_EQ(waiting.observations(1), 2u);
  EXPECT_EQ(waiting.observations(2), 7u);
  EXPECT_EQ(waiting.observations(3), 0u);
  EXPECT_EQ(waiting.new_users(), 1u);
  EXPECT_FALSE(waiting.has(3));

  EXPECT_EQ(waiting.pop().user, 1u);
  EXPECT_FALSE(waiting.has(1));
  EXPECT_EQ(waiting.new_users(), 1u);
  EXPECT_EQ(waiting.pop().observations.size(), 3u);
  EXPECT_EQ(waiting.observations(2), 4u);
  EXPECT_EQ(waiting.new_users(), 0u);  // the user is on disk now
  EXPECT_EQ(waiting.front().user, 2u);
  waiting.pop();
  EXPECT_FALSE(waiting.has(2));
  EXPECT_TRUE(waiting.empty());
}

TEST(WaitingChanges, AUserWithoutObservationsIsNotNew) {
  WaitingChanges waiting;
  waiting.push({.user = 1, .forgets = true}, false);
  EXPECT_TRUE(waiting.has(1));
  EXPECT_EQ(waiting.new_users(), 0u);
}

TEST(WaitingChanges, ShowsThoseOfAUserInTheirOrder) {
  WaitingChanges waiting;
  for (const size_t observations : {3, 1, 2}) {
    waiting.push(change_of(1, observations), true);
    waiting.push(change_of(2, 9), true);
  }
  std::vector<size_t> seen;
  waiting.for_each(1, [&](const UserChange& change) { seen.push_back(change.observations.size()); });
  EXPECT_EQ(seen, (std::vector<size_t>{3, 1, 2}));
}

}  // namespace
}  // namespace foliot
