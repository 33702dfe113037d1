#include "foundation/base/error_text.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace foliot {
namespace {

TEST(ErrorTextTest, ReportsWhatTheNumberMeans) {
  EXPECT_EQ(error_text(ENOENT), "No such file or directory");
  EXPECT_EQ(error_text(ENOSPC), "No space left on device");
}

TEST(ErrorTextTest, NamesANumberThatMeansNothing) {
  EXPECT_EQ(error_text(123456), "Unknown error 123456");
  EXPECT_EQ(error_text(-1), "Unknown error -1");
}

}  // namespace
}  // namespace foliot
