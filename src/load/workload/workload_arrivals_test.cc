#include "load/workload/workload_arrivals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace foliot {
namespace {

using testing::HasSubstr;

Workload two_groups() {
  return {.groups = {{.name = "major", .profile = "resnet50", .count = 10, .slo = Duration::milliseconds(100)},
                     {.name = "minor", .profile = "resnet50"}},
          .streams = {{.name = "users", .models = {"major"}, .arrivals = {.rate = 1000}}}};
}

std::vector<Arrival> play(const Workload& workload, Duration length, uint64_t seed = 1) {
  auto arrivals = WorkloadArrivals::make(workload, seed);
  EXPECT_TRUE(arrivals.ok()) << arrivals.status().message();
  std::vector<Arrival> result;
  while (const auto next = arrivals->next()) {
    if (next->at >= length) break;
    EXPECT_GE(next->at, result.empty() ? Duration() : result.back().at);
    result.push_back(*next);
  }
  return result;
}

std::string error_of(const Workload& workload) { return WorkloadArrivals::make(workload, 1).status().message(); }

TEST(WorkloadArrivalsTest, StreamsAreMergedInOrderOfTime) {
  Workload workload = two_groups();
  workload.streams.push_back({.name = "fixed",
                              .models = {"minor"},
                              .arrivals = {.kind = ArrivalKind::kUniform, .rate = 200},
                              .slo = Duration::milliseconds(25),
                              .start = Duration::seconds(1),
                              .stop = Duration::seconds(3)});
  std::map<uint32_t, uint64_t> by_stream;
  for (const Arrival& arrival : play(workload, Duration::seconds(10))) {
    ++by_stream[arrival.stream];
    EXPECT_EQ(arrival.model == 10, arrival.stream == 1);
    EXPECT_EQ(arrival.slo, Duration::milliseconds(arrival.stream == 1 ? 25 : 100));
    const bool within = arrival.at >= Duration::seconds(1) && arrival.at < Duration::seconds(3);
    EXPECT_TRUE(arrival.stream == 0 || within);
  }
  EXPECT_NEAR(static_cast<double>(by_stream[0]), 10'000, 400);
  EXPECT_NEAR(static_cast<double>(by_stream[1]), 400, 1);
}

TEST(WorkloadArrivalsTest, APartOfAWorkloadHasTheRequestsOfTheWhole) {
  Workload whole = two_groups();
  whole.streams.push_back({.name = "others", .models = {"minor"}, .arrivals = {.rate = 100}});
  Workload part = whole;
  part.streams.erase(part.streams.begin());
  const auto others = [](const Workload& workload) {
    std::vector<Duration> at;
    for (const Arrival& arrival : play(workload, Duration::seconds(1))) {
      if (workload.streams[arrival.stream].name == "others") at.push_back(arrival.at);
    }
    return at;
  };
  EXPECT_NE(others(part), others(whole));
  part.streams[0].position = 1;
  EXPECT_EQ(others(part), others(whole));
}

TEST(WorkloadArrivalsTest, ASeedGivesTheSameArrivalsAndStreamsDoNotDisturbEachOther) {
  Workload workload = two_groups();
  const auto alone = play(workload, Duration::seconds(1));
  workload.streams.push_back({.name = "other", .models = {"minor"}, .arrivals = {.rate = 500}});
  auto together = play(workload, Duration::seconds(1));
  std::erase_if(together, [](const Arrival& arrival) { return arrival.stream == 1; });
  ASSERT_EQ(alone.size(), together.size());
  for (size_t i = 0; i < alone.size(); ++i) {
    EXPECT_EQ(alone[i].at, together[i].at);
    EXPECT_EQ(alone[i].model, together[i].model);
  }
  EXPECT_NE(play(workload, Duration::seconds(1), 2).size(), 0u);
  EXPECT_NE(play(workload, Duration::seconds(1), 2).front().at, together.front().at);
}

TEST(WorkloadArrivalsTest, ModelsBecomeActiveOneByOne) {
  Workload workload = two_groups();
  workload.streams[0].activate_every = Duration::seconds(1);
  std::vector<std::map<uint32_t, uint64_t>> seconds(12);
  for (const Arrival& arrival : play(workload, Duration::seconds(12))) {
    ++seconds.at(static_cast<size_t>(arrival.at.to_seconds()))[arrival.model];
  }
  for (size_t second = 0; second < seconds.size(); ++second) {
    EXPECT_EQ(seconds[second].size(), std::min<size_t>(second + 1, 10)) << second;
  }
}

TEST(WorkloadArrivalsTest, EachModelCanHaveAProcessOfItsOwn) {
  Workload workload = two_groups();
  workload.streams[0].per_model = true;
  workload.streams[0].zipf = 1;
  workload.streams[0].arrivals.kind = ArrivalKind::kUniform;
  std::map<uint32_t, std::vector<Duration>> instants;
  for (const Arrival& arrival : play(workload, Duration::seconds(20))) instants[arrival.model].push_back(arrival.at);
  ASSERT_EQ(instants.size(), 10u);
  double harmonic = 0;
  for (int i = 1; i <= 10; ++i) harmonic += 1.0 / i;
  EXPECT_NEAR(static_cast<double>(instants[0].size()), 20'000 / harmonic, 2);
  EXPECT_NEAR(static_cast<double>(instants[9].size()), 2'000 / harmonic, 2);
  EXPECT_NE(instants[0].front(), instants[1].front());  // they do not march in step
}

TEST(WorkloadArrivalsTest, PopularityCanBeDrawn) {
  Workload workload = two_groups();
  const std::vector<uint32_t> listed = workload.models_of(workload.streams[0]);
  workload.streams[0].popularity_seed = 1;
  const std::vector<uint32_t> drawn = workload.models_of(workload.streams[0]);
  EXPECT_NE(drawn, listed);
  EXPECT_TRUE(std::is_permutation(drawn.begin(), drawn.end(), listed.begin(), listed.end()));
  EXPECT_EQ(drawn, workload.models_of(workload.streams[0]));
  workload.streams[0].popularity_seed = 2;
  EXPECT_NE(drawn, workload.models_of(workload.streams[0]));
}

TEST(WorkloadArrivalsTest, ClosedLoopsFollowTheirAnswers) {
  Workload workload = two_groups();
  workload.streams[0].concurrency = 3;
  workload.streams[0].stop = Duration::seconds(5);
  auto arrivals = WorkloadArrivals::make(workload, 1);
  ASSERT_TRUE(arrivals.ok());
  uint32_t users = 0;
  Arrival last;
  while (const auto next = arrivals->next()) {
    ++users;
    last = *next;
    EXPECT_EQ(next->at, Duration());
  }
  EXPECT_EQ(users, 30u);
  const auto next = arrivals->follow(last, Duration::seconds(2));
  ASSERT_TRUE(next);
  EXPECT_EQ(next->at, Duration::seconds(2) + workload.streams[0].think_time);
  EXPECT_EQ(next->model, last.model);
  EXPECT_EQ(next->slo, last.slo);
  EXPECT_FALSE(arrivals->follow(last, Duration::seconds(5)));
}

// Two functions, every second in turn.
class EverySecond : public FunctionTrace {
 public:
  uint32_t functions() const override { return 3; }
  std::unique_ptr<TraceReplay> replay(Random /*random*/) const override {
    class Replay : public TraceReplay {
      std::optional<Invocation> next() override {
        ++count_;
        return Invocation{Duration::seconds(count_), static_cast<uint32_t>(count_ % 3)};
      }
      int64_t count_ = 0;
    };
    return std::make_unique<Replay>();
  }
};

TEST(WorkloadArrivalsTest, FunctionsOfATraceAreMappedOntoModels) {
  Workload workload = two_groups();
  workload.groups[0].count = 2;
  workload.streams[0].trace = std::make_shared<EverySecond>();
  workload.streams[0].start = Duration::seconds(10);
  const auto arrivals = play(workload, Duration::seconds(15));
  ASSERT_EQ(arrivals.size(), 4u);
  EXPECT_EQ(arrivals[0].at, Duration::seconds(11));
  EXPECT_EQ(arrivals[0].model, 1u);  // function 1
  EXPECT_EQ(arrivals[1].model, 0u);  // function 2
  EXPECT_EQ(arrivals[2].model, 0u);  // function 0
}

TEST(WorkloadArrivalsTest, BestEffortHasNoDeadline) {
  Workload workload = two_groups();
  workload.streams[0].best_effort = true;
  const auto arrivals = play(workload, Duration::seconds(1));
  EXPECT_TRUE(arrivals.front().deadline(TimePoint()).is_infinite());
}

TEST(WorkloadArrivalsTest, NamesWhatIsWrong) {
  const auto with = [](auto change) {
    Workload workload = two_groups();
    change(workload);
    return error_of(workload);
  };
  EXPECT_THAT(with([](Workload& w) { w.streams[0].models = {"x"}; }), HasSubstr("stream 'users': models 'x' do not"));
  EXPECT_THAT(with([](Workload& w) { w.streams[0].arrivals.rate = -1; }), HasSubstr("the rate must be above 0"));
  EXPECT_THAT(with([](Workload& w) { w.streams[0].zipf = -1; }), HasSubstr("zipf"));
  EXPECT_THAT(with([](Workload& w) { w.streams[0].zipf = std::nan(""); }), HasSubstr("zipf"));
  EXPECT_THAT(with([](Workload& w) { w.streams[0].stop = Duration(); }), HasSubstr("stop must come after start"));
  EXPECT_THAT(with([](Workload& w) { w.groups[1].name = "major"; }), HasSubstr("'major': the name is given twice"));
  EXPECT_THAT(with([](Workload& w) { w.groups[0].count = 0; }), HasSubstr("models 'major': count"));
  EXPECT_THAT(with([](Workload& w) { w.streams.clear(); }), HasSubstr("[[streams]]"));
  EXPECT_THAT(with([](Workload& w) {
                w.pipelines = {{.name = "p", .stages = {{.name = "a", .models = w.groups[0].name, .first_of = {"b"}}}}};
                w.groups[0].count = 1;
              }),
              HasSubstr("pipeline 'p': stage 'a': there is no stage 'b' before it"));
  EXPECT_THAT(with([](Workload& w) {
                w.streams[0].concurrency = 1;
                w.streams[0].think_time = Duration();
              }),
              HasSubstr("think_time must be above 0"));
}

}  // namespace
}  // namespace foliot
