#include "edge/requests/server_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foliot {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ServerSettingsTest, LogSettingsAreThoseOfTheServer) {
  const LogLevels quiet{.info = false, .warning = true};
  EXPECT_EQ(log_settings(quiet).at("log_info"), LogSetting(false));
  EXPECT_EQ(log_settings(quiet).at("log_error"), LogSetting(true));
  EXPECT_TRUE(check_log_setting(quiet, "log_info", false).ok());
  const Status change = check_log_setting(quiet, "log_verbose_level", uint64_t{3});
  EXPECT_EQ(change.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(change.message(), AllOf(HasSubstr("is 0"), HasSubstr("to 3"), HasSubstr("--log-level")));
  const Status unknown = check_log_setting(quiet, "log_colour", true);
  EXPECT_EQ(unknown.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(unknown.message(), AllOf(HasSubstr("'log_colour'"), HasSubstr("log_format")));
}

TEST(ServerSettingsTest, TracingIsOff) {
  EXPECT_TRUE(check_trace_setting("trace_level", {"OFF"}).ok());
  EXPECT_TRUE(check_trace_setting("trace_rate", {}).ok());
  EXPECT_THAT(check_trace_setting("trace_level", {"TIMESTAMPS"}).message(), HasSubstr("foliot explain"));
  EXPECT_EQ(check_trace_setting("trace_level", {"TIMESTAMPS"}).code(), StatusCode::kUnimplemented);
  EXPECT_EQ(check_trace_setting("trace", {"1"}).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace foliot
