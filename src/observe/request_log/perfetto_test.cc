#include "observe/request_log/perfetto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "observe/request_log/test_history.h"

namespace foliot {
namespace {

using testing::HasSubstr;

std::string exported(const History& history) {
  std::ostringstream out;
  write_perfetto(log_of(history), out);
  return out.str();
}

// That the whole is JSON in the trace event format is tested end to end
// (tests/test_explain.py).
TEST(Perfetto, DrawsRequestsExecutorsArrowsAndCounters) {
  History history;
  history.request(1, kCold, 10, 60);
  history.load(1, kCold, 11, 12, 22);
  history.infer(2, kCold, {1}, 12, 22, 32);
  history.served(1, 2, 33);
  history.unload(3, kCold, 40);
  const std::string trace = exported(history);
  EXPECT_THAT(trace,
              HasSubstr(R"("ph":"X","name":"cold","cat":"foliot","pid":1,"tid":1,"ts":10000.000,"dur":23000.000)"));
  EXPECT_THAT(
      trace, HasSubstr(R"("ph":"X","name":"LOAD cold","cat":"foliot","pid":2,"tid":1,"ts":12000.000,"dur":10000.000)"));
  EXPECT_THAT(trace,
              HasSubstr(R"("ph":"X","name":"cold","cat":"foliot","pid":2,"tid":2,"ts":12000.000,"dur":100.000)"));
  EXPECT_THAT(trace,
              HasSubstr(R"("ph":"X","name":"cold","cat":"foliot","pid":2,"tid":3,"ts":22000.000,"dur":10000.000)"));
  EXPECT_THAT(trace, HasSubstr(R"("ph":"X","name":"cold","cat":"foliot","pid":2,"tid":4,"ts":32000.000,"dur":50.000)"));
  EXPECT_THAT(trace, HasSubstr(R"("ph":"s","name":"answer","cat":"request","id":1,"pid":1,"tid":1,"ts":10000.000)"));
  EXPECT_THAT(trace,
              HasSubstr(R"("ph":"f","bp":"e","name":"answer","cat":"request","id":1,"pid":2,"tid":3,"ts":22000.000)"));
  EXPECT_THAT(trace, HasSubstr(R"("ph":"C","name":"pages in use","pid":2,"tid":0,"ts":11000.000,"args":{"value":2})"));
  EXPECT_THAT(trace, HasSubstr(R"("ph":"C","name":"pages in use","pid":2,"tid":0,"ts":40000.000,"args":{"value":0})"));
  EXPECT_THAT(trace, HasSubstr(R"("ph":"C","name":"requests queued","pid":1)"));
}

TEST(Perfetto, LanesHaveTracks) {
  History history;
  for (uint64_t id = 1; id <= 2; ++id) history.request(id, kWarm, 10, 60);
  history.send_infer(1, kWarm, {1}, 12, {0, 1});
  history.send_infer(2, kWarm, {2}, 12, {2, 2});
  history.infer_done(1, 12, 22);
  history.infer_done(2, 13, 20);
  history.served(2, 2, 21);
  const std::string trace = exported(history);
  EXPECT_THAT(trace,
              HasSubstr(R"("ph":"X","name":"warm","cat":"foliot","pid":2,"tid":3,"ts":12000.000,"dur":10000.000)"));
  EXPECT_THAT(trace,
              HasSubstr(R"("ph":"X","name":"warm","cat":"foliot","pid":2,"tid":6,"ts":13000.000,"dur":7000.000)"));
  EXPECT_THAT(trace, HasSubstr(R"("pid":2,"tid":6,"args":{"name":"EXEC on lane 2"})"));
  EXPECT_THAT(trace, HasSubstr(R"("name":"answer","cat":"request","id":2,"pid":2,"tid":6,"ts":13000.000)"));
}

TEST(Perfetto, RequestsAtTheSameTimeAreOnTracksOfTheirOwn) {
  History history;
  history.request(1, kWarm, 10, 60);
  history.request(2, kWarm, 11, 60);
  history.refused(1, Refusal::kExpired, 20);
  history.request(3, kWarm, 20, 60);
  history.refused(2, Refusal::kExpired, 25);
  history.refused(3, Refusal::kExpired, 25);
  const std::string trace = exported(history);
  EXPECT_THAT(trace, HasSubstr(R"("tid":1,"ts":10000.000)"));
  EXPECT_THAT(trace, HasSubstr(R"("tid":2,"ts":11000.000)"));
  EXPECT_THAT(trace, HasSubstr(R"("tid":1,"ts":20000.000)"));
}

}  // namespace
}  // namespace foliot
