#include "load/client/load_generator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <thread>

namespace foliot {
namespace {

// A client without a server: answers on a thread of its own, in order, with the result
// of `answer`, or never while it is silent.
class EchoClient : public InferenceClient {
 public:
  explicit EchoClient(std::function<Response(uint64_t)> answer) : answer_(std::move(answer)) {}
  ~EchoClient() override { stop(); }

  void start(ResponseSink& sink) {
    sink_ = &sink;
    thread_ = std::thread([this] { answer_all(); });
  }
  Status connect() override { return Status(); }
  Result<std::vector<ListedModel>> list_models() override { return std::vector<ListedModel>{}; }
  Result<ModelDescription> describe(const std::string&) override { return ModelDescription{}; }
  PreparedRequest prepare(const InferenceBody&) override { return PreparedRequest(0); }
  void send(PreparedRequest request, uint64_t tag) override {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(tag);
    in_flight_max_ = std::max(in_flight_max_, waiting_.size());
    sent_.push_back(request.value());
  }
  void stop() override {
    if (!thread_.joinable()) return;
    stopping_ = true;
    thread_.join();
    for (const uint64_t tag : std::exchange(waiting_, {})) {
      sink_->on_response(tag, {LoadOutcome::kFailed, "given up"});
    }
  }

  std::atomic<bool> silent_{false};
  std::vector<uint32_t> sent_;
  size_t in_flight_max_ = 0;

 private:
  void answer_all() {
    while (!stopping_) {
      std::optional<uint64_t> tag;
      {
        const std::lock_guard lock(mutex_);
        if (!waiting_.empty() && !silent_) {
          tag = waiting_.front();
          waiting_.pop_front();
        }
      }
      if (tag) {
        sink_->on_response(*tag, answer_(answered_++));
      } else {
        std::this_thread::yield();
      }
    }
  }

  const std::function<Response(uint64_t)> answer_;
  ResponseSink* sink_ = nullptr;
  std::mutex mutex_;
  std::deque<uint64_t> waiting_;
  uint64_t answered_ = 0;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

Response good(uint64_t) { return {}; }

std::vector<Duration> every_millisecond(int64_t count) {
  std::vector<Duration> instants;
  for (int64_t i = 0; i < count; ++i) instants.push_back(Duration::milliseconds(i));
  return instants;
}

std::unique_ptr<LoadSource> source_of(const Workload& workload, uint64_t seed = 1) {
  return make_workload_source(std::move(WorkloadArrivals::make(workload, seed)).value());
}

// Plays a workload whose models are asked without a deadline; request i is of model i.
LoadPlan plan_of(const Workload& workload, Duration duration, uint64_t seed = 1) {
  LoadPlan plan;
  plan.source = source_of(workload, seed);
  for (uint32_t model = 0; model < workload.models(); ++model) {
    plan.requests[{model, Duration::max()}] = {PreparedRequest(model)};
  }
  plan.duration = duration;
  return plan;
}

LoadPlan open_loop(int64_t count, Duration duration) {
  const ArrivalOptions instants{.kind = ArrivalKind::kReplay, .instants = every_millisecond(count)};
  return plan_of({.groups = {{.name = "m"}}, .streams = {{.name = "s", .arrivals = instants}}}, duration);
}

LoadPlan closed_loop(uint32_t users, Duration duration) {
  LoadPlan plan;
  plan.source = make_users(users, Popularity(1, 0), Duration::max(), 1);
  plan.requests[{0, Duration::max()}] = {PreparedRequest(0)};
  plan.duration = duration;
  return plan;
}

void run(LoadPlan plan, EchoClient& client, LoadReport& report, const LoadHooks& hooks = {}) {
  LoadGenerator generator(std::move(plan), report);
  client.start(generator);
  ASSERT_TRUE(generator.run(client, hooks).ok());
}

TEST(LoadGeneratorTest, OpenLoopSendsWhatIsDueAndEndsWithTheTrace) {
  LoadReport report({.models = {"m"}});
  EchoClient client(good);
  run(open_loop(50, Duration::seconds(60)), client, report);
  EXPECT_EQ(report.total().offered, 50u);
  EXPECT_EQ(report.total().good, 50u);
  EXPECT_EQ(report.send_lag().count(), 50u);
}

TEST(LoadGeneratorTest, OpenLoopStopsAtTheEnd) {
  LoadReport report({.models = {"m"}});
  EchoClient client(good);
  run(open_loop(1000, Duration::milliseconds(30)), client, report);
  EXPECT_LE(report.total().offered, 30u);
  EXPECT_GE(report.total().offered, 1u);
}

TEST(LoadGeneratorTest, WarmUpIsSentButNotCounted) {
  LoadReport report({.models = {"m"}});
  EchoClient client(good);
  LoadPlan plan = open_loop(40, Duration::seconds(60));
  plan.warmup = Duration::milliseconds(25);
  run(std::move(plan), client, report);
  EXPECT_EQ(client.sent_.size(), 40u);
  EXPECT_EQ(report.total().offered, 15u);
}

TEST(LoadGeneratorTest, OpenLoopDoesNotWaitForASilentServer) {
  LoadReport report({.models = {"m"}});
  EchoClient client(good);
  client.silent_ = true;
  LoadPlan plan = open_loop(20, Duration::milliseconds(40));
  plan.in_flight_max = 15;
  plan.drain_timeout = Duration::milliseconds(5);
  run(std::move(plan), client, report);
  EXPECT_EQ(report.total().offered, 20u);
  EXPECT_EQ(report.total().sent, 15u);
  EXPECT_EQ(report.total().failed, 15u);
  EXPECT_EQ(report.failures().at("given up"), 15u);
  EXPECT_TRUE(report.generator_lagged());
}

TEST(LoadGeneratorTest, RefusalsAndFailuresAreDistinguished) {
  LoadReport report({.models = {"m"}});
  EchoClient client([](uint64_t i) -> Response {
    if (i % 3 == 0) return {LoadOutcome::kRefused, "overload"};
    if (i % 3 == 1) return {LoadOutcome::kFailed, "connection reset"};
    return {};
  });
  run(open_loop(30, Duration::seconds(60)), client, report);
  EXPECT_EQ(report.refusals().at("overload"), 10u);
  EXPECT_EQ(report.failures().at("connection reset"), 10u);
  EXPECT_EQ(report.total().good, 10u);
}

TEST(LoadGeneratorTest, ClosedLoopKeepsItsConcurrency) {
  LoadReport report({.models = {"m"}});
  EchoClient client(good);
  run(closed_loop(3, Duration::milliseconds(50)), client, report);
  EXPECT_EQ(client.in_flight_max_, 3u);
  EXPECT_GT(report.total().offered, 3u);  // answers brought new requests
  EXPECT_EQ(report.total().good, client.sent_.size());
  EXPECT_EQ(report.total().good, report.total().offered);
}

TEST(LoadGeneratorTest, StopsWhenAsked) {
  LoadReport report({.models = {"m"}});
  EchoClient client(good);
  int asked = 0;
  LoadHooks hooks;
  hooks.should_stop = [&] { return ++asked == 2; };
  run(closed_loop(1, Duration::seconds(3600)), client, report, hooks);
  EXPECT_EQ(report.total().failed, 0u);
}

// Two streams of bursts to three models.
Workload bursts() {
  const ArrivalOptions gamma{.kind = ArrivalKind::kGamma, .rate = 500, .coefficient_of_variation = 4};
  return {.groups = {{.name = "a", .count = 2}, {.name = "b"}},
          .streams = {{.name = "all", .arrivals = gamma, .zipf = 1},
                      {.name = "one", .models = {"b"}, .arrivals = {.rate = 200}}}};
}

TEST(LoadGeneratorTest, SendsWhatTheSeedSaysInItsOrder) {
  const auto sent = [](uint64_t seed) {
    LoadReport report({.models = {"a_0", "a_1", "b"}, .streams = {"all", "one"}});
    EchoClient client(good);
    run(plan_of(bursts(), Duration::milliseconds(100), seed), client, report);
    EXPECT_EQ(report.stream(0).good + report.stream(1).good, client.sent_.size());
    return client.sent_;
  };
  WorkloadArrivals arrivals = std::move(WorkloadArrivals::make(bursts(), 1)).value();
  std::vector<uint32_t> expected;
  while (true) {
    const Arrival arrival = *arrivals.next();
    if (arrival.at >= Duration::milliseconds(100)) break;
    expected.push_back(arrival.model);
  }
  EXPECT_EQ(sent(1), expected);
  EXPECT_NE(sent(2), expected);
}

TEST(LoadGeneratorTest, UsersThinkBeforeTheyAskAgain) {
  const auto asked = [](Duration think_time) {
    LoadReport report({.models = {"m"}});
    EchoClient client(good);
    const Stream users{.name = "users", .concurrency = 2, .think_time = think_time};
    run(plan_of({.groups = {{.name = "m"}}, .streams = {users}}, Duration::milliseconds(500)), client, report);
    EXPECT_LE(client.in_flight_max_, 2u);
    return report.total().good;
  };
  EXPECT_EQ(asked(Duration::seconds(60)), 2u);
  const uint64_t often = asked(Duration::milliseconds(10));
  EXPECT_GT(often, 2u);
  EXPECT_LE(often, 100u);
}

TEST(LoadGeneratorTest, EachStreamHasItsOwnObjective) {
  LoadReport report({.models = {"m"}, .streams = {"urgent", "relaxed"}});
  EchoClient client(good);
  const ArrivalOptions instants{.kind = ArrivalKind::kReplay, .instants = every_millisecond(10)};
  LoadPlan plan = plan_of({.groups = {{.name = "m"}},
                           .streams = {{.name = "urgent", .arrivals = instants, .slo = Duration::nanoseconds(1)},
                                       {.name = "relaxed", .arrivals = instants}}},
                          Duration::seconds(60));
  plan.requests[{0, Duration::nanoseconds(1)}] = {PreparedRequest(7)};
  run(std::move(plan), client, report);
  EXPECT_EQ(report.stream(0).late, 10u);
  EXPECT_EQ(report.stream(1).good, 10u);
  EXPECT_EQ(std::count(client.sent_.begin(), client.sent_.end(), 7u), 10);
}

}  // namespace
}  // namespace foliot
