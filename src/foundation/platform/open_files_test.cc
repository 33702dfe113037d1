#include "foundation/platform/open_files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace foliot {
namespace {

TEST(OpenFilesTest, TakesAllThatItMay) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit lower = limit;
  lower.rlim_cur = 64;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &lower), 0);
  EXPECT_EQ(raise_open_files_limit(), limit.rlim_max);
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &lower), 0);
  EXPECT_EQ(lower.rlim_cur, limit.rlim_max);
}

}  // namespace
}  // namespace foliot
