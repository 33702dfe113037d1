#include "edge/jobs/job_copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class JobCopyTest : public testing::Test {
 protected:
  // `done` distinguishes states of one job.
  static RevisedJob one(const std::string& id, uint64_t number, uint64_t done, uint64_t revision) {
    return {{.id = id, .number = number, .done = done}, revision};
  }
  std::vector<std::string> ids() const {
    std::vector<std::string> all;
    for (const Job& job : copy_.list()) all.push_back(job.id);
    return all;
  }
  uint64_t done(const std::string& id) const { return copy_.find(id)->done; }

  JobCopy copy_;
};

TEST_F(JobCopyTest, HasTheNewestOfEachInTheOrderOfNumbers) {
  copy_.put(one("b", 10, 0, 1));
  copy_.put(one("a", 9, 5, 3));
  copy_.put(one("a", 9, 4, 2));
  EXPECT_THAT(ids(), ElementsAre("a", "b"));
  EXPECT_EQ(done("a"), 5u);
  EXPECT_FALSE(copy_.find("c"));
  copy_.remove("a");
  copy_.remove("a");
  EXPECT_THAT(ids(), ElementsAre("b"));
}

TEST_F(JobCopyTest, AFullReadReplacesAllButWhatIsNewer) {
  copy_.put(one("gone", 1, 0, 10));
  copy_.put(one("lost_its_last_change", 2, 7, 20));
  copy_.put(one("changed_meanwhile", 3, 7, 40));
  copy_.put(one("added_meanwhile", 4, 0, 41));
  copy_.replace({one("lost_its_last_change", 2, 6, 15), one("changed_meanwhile", 3, 1, 12), one("new", 5, 0, 30)}, 30);
  EXPECT_THAT(ids(), ElementsAre("lost_its_last_change", "changed_meanwhile", "added_meanwhile", "new"));
  EXPECT_EQ(done("lost_its_last_change"), 6u);
  EXPECT_EQ(done("changed_meanwhile"), 7u);
}

TEST_F(JobCopyTest, ForgetsWhatTheStoreHasNoMore) {
  copy_.put(one("a", 1, 0, 10));
  copy_.put(one("b", 2, 0, 11));
  copy_.put(one("c", 3, 0, 13));
  copy_.keep_only({"b"}, 12);
  EXPECT_THAT(ids(), ElementsAre("b", "c")) << "what is newer may be there by now";
  EXPECT_EQ(copy_.size(), 2u);
  copy_.replace({}, 100);
  EXPECT_THAT(ids(), IsEmpty());
}

}  // namespace
}  // namespace foliot
