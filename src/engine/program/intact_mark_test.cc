#include "engine/program/intact_mark.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace foliot {
namespace {

class IntactMarkTest : public testing::Test {
 protected:
  IntactMarkTest() {
    std::string name = testing::TempDir() + "foliot_mark_XXXXXX";
    file_ = File(::mkostemp(name.data(), O_CLOEXEC));
    ::unlink(name.c_str());
  }
  struct stat status() const {
    struct stat status {};
    EXPECT_EQ(::fstat(file_.descriptor(), &status), 0);
    return status;
  }

  File file_;
};

TEST_F(IntactMarkTest, IsVoidOnceTheFileIsWrittenTo) {
  EXPECT_FALSE(is_marked_intact(file_, status()));
  mark_intact(file_, status());
  if (!is_marked_intact(file_, status())) GTEST_SKIP() << "this file system keeps no attributes";

  timespec times[2] = {{0, UTIME_OMIT}, {1'000'000'000, 1}};
  ASSERT_EQ(::futimens(file_.descriptor(), times), 0);
  EXPECT_FALSE(is_marked_intact(file_, status()));
  mark_intact(file_, status());
  EXPECT_TRUE(is_marked_intact(file_, status()));

  ASSERT_EQ(::ftruncate(file_.descriptor(), 1), 0);
  ASSERT_EQ(::futimens(file_.descriptor(), times), 0);
  EXPECT_FALSE(is_marked_intact(file_, status()));
}

}  // namespace
}  // namespace foliot
