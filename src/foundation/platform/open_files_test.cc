#include "foundation/platform/open_files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>

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

// For how many this process has room.
uint64_t room() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("FDSize:")) return std::stoull(line.substr(7));
  return 0;
}

TEST(OpenFilesTest, HasRoomForThoseThatAreReserved) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const uint64_t count = std::min<uint64_t>(limit.rlim_cur, 4096);
  ASSERT_LT(room(), count);
  reserve_open_files(count);
  EXPECT_GE(room(), count);
}

TEST(OpenFilesTest, TheRoomIsLimited) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  reserve_open_files(limit.rlim_cur);
  EXPECT_LE(room(), 65'536);
}

}  // namespace
}  // namespace foliot
