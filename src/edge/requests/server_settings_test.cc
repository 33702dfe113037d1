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

TEST(ServerSettingsTest, NothingIsTracedWithoutACollector) {
  const TraceExport off;
  EXPECT_TRUE(check_trace_setting(off, "trace_level", {"OFF"}).ok());
  EXPECT_TRUE(check_trace_setting(off, "trace_rate", {}).ok());
  const Status change = check_trace_setting(off, "trace_level", {"TIMESTAMPS"});
  EXPECT_EQ(change.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(change.message(), AllOf(HasSubstr("--otlp URL"), HasSubstr("foliot explain")));
  EXPECT_EQ(check_trace_setting(off, "trace", {"1"}).code(), StatusCode::kInvalidArgument);
}

TEST(ServerSettingsTest, TracesAreThoseThatGoToTheCollector) {
  const TraceExport one_in_forty{.on = true, .share = 0.025};
  const auto settings = trace_settings(one_in_forty);
  EXPECT_EQ(settings.at("trace_level").front(), "TIMESTAMPS");
  EXPECT_EQ(settings.at("trace_mode").front(), "opentelemetry");
  EXPECT_EQ(settings.at("trace_rate").front(), "40");
  EXPECT_EQ(trace_settings({.on = true}).at("trace_rate").front(), "0") << "only calls whose traceparent says so";
  EXPECT_TRUE(check_trace_setting(one_in_forty, "trace_rate", {"40"}).ok());
  const Status change = check_trace_setting(one_in_forty, "trace_rate", {"1"});
  EXPECT_EQ(change.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(change.message(), HasSubstr("another --otlp-share"));
}

}  // namespace
}  // namespace foliot
