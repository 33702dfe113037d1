// The acceptance test of the made-up trace: it must have what makes the recorded
// ones hard.
#include "load/workload/azure_like_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

namespace foliot {
namespace {

constexpr AzureLikeOptions kOptions{.functions = 46'000, .rate = 1000};

TEST(AzureLikeTraceTest, FewFunctionsBringAlmostAllInvocations) {
  const AzureLikeTrace trace(kOptions);
  std::vector<double> rates;
  double sum = 0;
  for (uint32_t i = 0; i < trace.functions(); ++i) {
    rates.push_back(trace.function(i).rate);
    sum += rates.back();
  }
  EXPECT_NEAR(sum, kOptions.rate, 1e-6 * kOptions.rate);
  std::sort(rates.begin(), rates.end(), std::greater<>());
  double top = 0;
  for (size_t i = 0; i < rates.size() * 186 / 1000; ++i) top += rates[i];
  std::printf("top 18.6 %% of functions: %.2f %% of invocations; rates span a factor of %.3g\n", 100 * top / sum,
              rates.front() / rates.back());
  EXPECT_GT(top / sum, 0.98);
  EXPECT_LT(top / sum, 0.998);
  EXPECT_GT(rates.front() / rates.back(), 1e8);
}

TEST(AzureLikeTraceTest, TriggersHaveTheirShares) {
  const AzureLikeTrace trace(kOptions);
  std::map<FunctionTrigger, double> functions, invocations;
  for (uint32_t i = 0; i < trace.functions(); ++i) {
    functions[trace.function(i).trigger] += 1.0 / trace.functions();
    invocations[trace.function(i).trigger] += trace.function(i).rate / kOptions.rate;
  }
  EXPECT_NEAR(functions[FunctionTrigger::kHttp], 0.55, 0.01);
  EXPECT_NEAR(functions[FunctionTrigger::kTimer], 0.16, 0.01);
  EXPECT_NEAR(invocations[FunctionTrigger::kHttp], 0.36, 1e-6);
  EXPECT_NEAR(invocations[FunctionTrigger::kQueue], 0.34, 1e-6);
  EXPECT_NEAR(invocations[FunctionTrigger::kEvent], 0.25, 1e-6);
  EXPECT_NEAR(invocations[FunctionTrigger::kTimer], 0.02, 1e-6);
}

TEST(AzureLikeTraceTest, TimersMakeSpikesOnTheMinute) {
  const AzureLikeTrace trace(kOptions);
  const auto player = trace.replay(Random(1));
  constexpr size_t kSeconds = 20 * 60;
  std::vector<uint64_t> per_second(kSeconds), timers(kSeconds);
  Duration before;
  uint64_t total = 0;
  while (const auto next = player->next()) {
    ASSERT_GE(next->at, before);
    before = next->at;
    const auto second = static_cast<size_t>(next->at.to_seconds());
    if (second >= kSeconds) break;
    ++total;
    ++per_second[second];
    if (trace.function(next->function).trigger == FunctionTrigger::kTimer) ++timers[second];
  }
  // Mondays at nine, more people are there than on average.
  EXPECT_NEAR(static_cast<double>(total) / kSeconds, kOptions.rate, 0.25 * kOptions.rate);
  for (size_t second = 0; second < kSeconds; ++second) {
    if (second % 60 != 0) {
      EXPECT_EQ(timers[second], 0u) << second;
    } else {
      EXPECT_GT(timers[second], 0u) << second;
    }
  }
  EXPECT_GT(timers[300], timers[60]);   // every five minutes
  EXPECT_GT(timers[900], timers[300]);  // every quarter of an hour
  EXPECT_GT(timers[0], timers[900]);    // every hour
  // No burst because everything begins at once.
  EXPECT_LT(static_cast<double>(per_second[1]), 3 * kOptions.rate);
}

TEST(AzureLikeTraceTest, ASeedGivesTheSameTrace) {
  const AzureLikeTrace first({.functions = 100, .rate = 50, .seed = 3});
  const AzureLikeTrace second({.functions = 100, .rate = 50, .seed = 3});
  const auto a = first.replay(Random(7));
  const auto b = second.replay(Random(7));
  for (int i = 0; i < 1000; ++i) {
    const auto x = a->next(), y = b->next();
    ASSERT_TRUE(x && y);
    EXPECT_EQ(x->at, y->at);
    EXPECT_EQ(x->function, y->function);
  }
}

}  // namespace
}  // namespace foliot
