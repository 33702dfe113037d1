#include "load/workload/azure_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace foliot {
namespace {

using testing::HasSubstr;

constexpr const char* k2019 =
    "HashOwner,HashApp,HashFunction,Trigger,1,2,3\n"
    "o,a,f,http,2,0,1\n"
    "o,a,g,timer,0,10,0\n";
constexpr const char* k2021 =
    "app,func,end_timestamp,duration\n"
    "a,f,1.5,0.5\n"
    "a,g,10,8\n"
    "a,f,4.25,1\n";

std::vector<Invocation> replay(const std::shared_ptr<const FunctionTrace>& trace, uint64_t seed = 1) {
  std::vector<Invocation> result;
  const auto player = trace->replay(Random(seed));
  while (const auto next = player->next()) {
    EXPECT_GE(next->at, result.empty() ? Duration() : result.back().at);
    result.push_back(*next);
  }
  EXPECT_FALSE(player->next());
  return result;
}

std::vector<Invocation> replay_2019(const std::vector<TraceText>& days, const TraceOptions& options = {}) {
  const auto trace = parse_azure_2019(days, options);
  EXPECT_TRUE(trace.ok()) << trace.status().message();
  return replay(*trace);
}

TEST(AzureTraceTest, PlaysCountsWithinTheirMinutes) {
  std::map<std::pair<uint32_t, int64_t>, int> counts;  // function, minute
  for (const Invocation& each : replay_2019({{"d01", k2019}, {"d02", k2019}})) {
    ++counts[{each.function, static_cast<int64_t>(each.at.to_seconds() / 60)}];
  }
  const std::map<std::pair<uint32_t, int64_t>, int> expected{{{0, 0}, 2}, {{0, 2}, 1}, {{1, 1}, 10},
                                                             {{0, 3}, 2}, {{0, 5}, 1}, {{1, 4}, 10}};
  EXPECT_EQ(counts, expected);
}

TEST(AzureTraceTest, PlaysAPartAtAnotherRate) {
  const TraceOptions part{.from = Duration::seconds(60), .length = Duration::seconds(60), .rate = 100};
  const auto invocations = replay_2019({{"d01", k2019}}, part);
  EXPECT_EQ(invocations.size(), 6000u);
  for (const Invocation& each : invocations) EXPECT_EQ(each.function, 1u);
  EXPECT_LT(invocations.back().at, Duration::seconds(60));
}

TEST(AzureTraceTest, PlaysEveryInvocationFromItsStart) {
  const auto trace = parse_azure_2021({"t", k2021}, {});
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  EXPECT_EQ((*trace)->functions(), 2u);
  const auto invocations = replay(*trace);
  ASSERT_EQ(invocations.size(), 3u);
  EXPECT_EQ(invocations[0].at, Duration::seconds(1));
  EXPECT_EQ(invocations[1].at, Duration::seconds(2));
  EXPECT_EQ(invocations[1].function, 1u);
  EXPECT_EQ(invocations[2].at, Duration::milliseconds(3250));

  const auto ten_times = parse_azure_2021({"t", k2021}, {.rate = 30 / 3.25});
  ASSERT_TRUE(ten_times.ok());
  EXPECT_NEAR(static_cast<double>(replay(*ten_times).size()), 30, 1);
}

TEST(AzureTraceTest, GapsAndDisorderAreNamed) {
  const auto error_2019 = [](const std::string& text) {
    return parse_azure_2019({{"d01.csv", text}}, {}).status().message();
  };
  EXPECT_THAT(error_2019("HashOwner,HashApp,HashFunction,Trigger,1,3\n"),
              HasSubstr("d01.csv:1: column '3' where minute 2 is expected: a gap"));
  EXPECT_THAT(error_2019("HashOwner,HashApp,HashFunction,Trigger,1,2\no,a,f,http,1,\n"),
              HasSubstr("d01.csv:2: minute 2 is missing"));
  EXPECT_THAT(error_2019("HashOwner,HashApp,HashFunction,Trigger,1,2\no,a,f,http,1\n"),
              HasSubstr("d01.csv:2: minute 2 is missing"));
  EXPECT_THAT(error_2019("HashOwner,HashApp,HashFunction,Trigger,1\no,a,f,http,-4\n"),
              HasSubstr("d01.csv:2: minute 1: '-4' is no count"));
  EXPECT_THAT(error_2019("HashOwner,HashApp,HashFunction,Trigger,1\no,a,f,http,1,1\n"), HasSubstr("more than 1"));
  EXPECT_THAT(error_2019("HashApp,1\n"), HasSubstr("'HashOwner' is missing"));
  EXPECT_THAT(error_2019("HashOwner,HashApp,HashFunction,Trigger,1\no,a,f,http,0\n"), HasSubstr("no invocations"));
  EXPECT_THAT(read_azure_2019({"/nowhere/d01.csv"}, {}).status().message(), HasSubstr("/nowhere/d01.csv"));

  const auto error_2021 = [](const std::string& rows) {
    return parse_azure_2021({"t.txt", "app,func,end_timestamp,duration\n" + rows}, {}).status().message();
  };
  EXPECT_THAT(error_2021("a,f,5,1\na,f,4,1\n"), HasSubstr("t.txt:3: it begins at 3.000000 s, before"));
  EXPECT_THAT(error_2021("a,f,x,1\n"), HasSubstr("t.txt:2: end_timestamp 'x'"));
  EXPECT_THAT(error_2021("a,f,1,-1\n"), HasSubstr("t.txt:2: duration '-1'"));
  EXPECT_THAT(error_2021("a,f,1\n"), HasSubstr("t.txt:2: duration ''"));
  EXPECT_THAT(parse_azure_2021({"t.txt", "x\n"}, {}).status().message(), HasSubstr("t.txt:1: the columns"));
  EXPECT_EQ(error_2021("a,f,5.000,1\na,f,5.0001,1.0005\n"), "");  // rounding is no disorder
}

}  // namespace
}  // namespace foliot
