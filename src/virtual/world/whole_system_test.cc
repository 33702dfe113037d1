// The whole system in virtual time: the controller, the policy and the worker's
// queueing logic that run in production, hundreds of thousands of requests, noise
// on everything, and checkers that stop at the first broken promise.
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <vector>

#include "control/policies/foliot/foliot_policy.h"
#include "foundation/base/random.h"
#include "virtual/world/virtual_cluster.h"

namespace foliot {
namespace {

Controller::PolicyFactory policy() {
  return [](const Cluster& cluster) { return foliot_policy::make_foliot_policy(cluster); };
}

// Ids in no order of arrival, as those of front ends: odd, so all are different.
constexpr uint64_t kIdFactor = 0x9e3779b97f4a7c15;

// ResNet-50 on a V100 (Clockwork, Table 1).
std::shared_ptr<ModelInfo> resnet50(uint32_t id) {
  auto model = std::make_shared<ModelInfo>();
  model->id = ModelId(id);
  model->name = "resnet50_" + std::to_string(id);
  model->only().batch_sizes = {1, 2, 4, 8, 16};
  model->only().pages = 7;
  model->only().seed_load = Duration::microseconds(8330);
  model->buckets.resize(1);
  std::vector<Duration>& seeds = model->only().seed_exec.emplace_back();
  for (const double exec : {2.61, 3.78, 5.61, 9.13, 15.67}) seeds.push_back(Duration::from_milliseconds(exec));
  return model;
}

struct Scenario {
  uint32_t models = 50;
  uint32_t devices = 1;
  uint32_t pages = 7 * 20;
  double rate = 300;  // requests/s in all
  Duration slo = Duration::milliseconds(100);
  uint64_t requests = 100'000;
  uint64_t seed = 1;
  double cancelled = 0;  // share of requests whose client goes away at once
  NoiseOptions noise;
};

struct Result {
  uint64_t requests, served, overload, unmeetable, expired, late, cancelled, loads, execs, event_hash;
  Duration refusal_wait_max;
  Duration virtual_time;
};

// Poisson arrivals, models drawn with Zipf-like popularity (1/(rank+1)).
class Run {
 public:
  explicit Run(const Scenario& scenario)
      : scenario_(scenario),
        random_(scenario.seed),
        cluster_(loop_,
                 {.seed = scenario.seed + 1,
                  .devices = scenario.devices,
                  .pages_per_device = scenario.pages,
                  .noise = scenario.noise,
                  .controller = {}},
                 policy(), [this](const Completion& completion) { on_completion(completion); }) {
    double total = 0;
    for (uint32_t id = 0; id < scenario.models; ++id) {
      cluster_.add_model(resnet50(id));
      popularity_.push_back(total += 1.0 / (id + 1));
    }
  }

  Result finish() {
    arrive();
    loop_.run_until(TimePoint::infinite_future());
    Checker& checker = cluster_.checker();
    checker.check_finished();
    EXPECT_TRUE(cluster_.pages_agree());
    EXPECT_EQ(cluster_.controller().proposals_rejected(), 0u);
    EXPECT_EQ(cluster_.controller().queued(), 0u);
    return {checker.requests(),
            checker.served(),
            checker.refused(Refusal::kOverload),
            checker.refused(Refusal::kUnmeetable),
            checker.refused(Refusal::kExpired),
            checker.refused(Refusal::kLate),
            checker.refused(Refusal::kCancelled),
            checker.loads(),
            checker.execs(),
            cluster_.event_hash(),
            refusal_wait_max_,
            loop_.now() - TimePoint()};
  }

 private:
  void arrive() {
    if (sent_ == scenario_.requests) return;
    ++sent_;
    const double drawn = random_.uniform() * popularity_.back();
    uint32_t model = 0;
    while (popularity_[model] < drawn) ++model;
    const RequestId id(sent_ * kIdFactor);
    cluster_.submit(
        {.id = id,
         .model = ModelId(model),
         .arrival = loop_.now(),
         .deadline = scenario_.slo == Duration::max() ? TimePoint::infinite_future() : loop_.now() + scenario_.slo});
    if (scenario_.cancelled > 0 && random_.uniform() < scenario_.cancelled) cluster_.cancel(id);
    loop_.at(loop_.now() + Duration::from_seconds(random_.exponential() / scenario_.rate), [this] { arrive(); });
  }

  void on_completion(const Completion& completion) {
    if (!completion.served() && completion.refusal != Refusal::kLate) {
      refusal_wait_max_ = std::max(refusal_wait_max_, completion.finished - completion.arrival);
    }
  }

  Scenario scenario_;
  Random random_;
  VirtualLoop loop_;
  std::vector<double> popularity_;
  uint64_t sent_ = 0;
  Duration refusal_wait_max_;
  VirtualCluster cluster_;
};

Result run(const Scenario& scenario) {
  const Result result = Run(scenario).finish();
  EXPECT_EQ(result.requests, scenario.requests);
  std::printf(
      "served %.2f %% of %lu in %.1f s; overload %lu unmeetable %lu expired %lu late %lu cancelled %lu; %lu loads, "
      "%lu execs; event hash %016lx\n",
      100.0 * static_cast<double>(result.served) / static_cast<double>(result.requests), result.requests,
      result.virtual_time.to_seconds(), result.overload, result.unmeetable, result.expired, result.late,
      result.cancelled, result.loads, result.execs, result.event_hash);
  return result;
}

TEST(WholeSystemTest, ServesAlmostAllWithinCapacity) {
  const Result result = run({.models = 15, .rate = 300, .requests = 200'000});
  EXPECT_GT(result.served, result.requests * 999 / 1000);
}

TEST(WholeSystemTest, SwapsModelsThroughAPageCacheThatHoldsAFewOfThem) {
  const Result result = run({.models = 100, .pages = 7 * 40, .rate = 200, .requests = 100'000});
  EXPECT_GT(result.loads, 1000u);
  EXPECT_GT(result.served, result.requests * 9 / 10);
}

TEST(WholeSystemTest, KeepsItsGoodputAtThreeTimesItsCapacity) {
  // Batches of 16 in 15.67 ms: 1,021 requests/s at the very most.
  const Result result = run({.models = 1, .rate = 3000, .requests = 300'000});
  const double goodput = static_cast<double>(result.served) / result.virtual_time.to_seconds();
  EXPECT_GT(goodput, 0.95 * 1021);
  EXPECT_EQ(result.late, 0u);
  EXPECT_GT(result.overload, result.expired);
}

TEST(WholeSystemTest, SpreadsOverDevices) {
  const Result result = run({.models = 20, .devices = 4, .pages = 7 * 10, .rate = 1200, .requests = 200'000});
  EXPECT_GT(result.served, result.requests * 98 / 100);
}

TEST(WholeSystemTest, AnswersEveryBestEffortRequest) {
  const Result result = run({.models = 30, .pages = 7 * 5, .rate = 60, .slo = Duration::max(), .requests = 20'000});
  EXPECT_EQ(result.served, result.requests);
}

TEST(WholeSystemTest, SurvivesOutliersAndCancellations) {
  Scenario scenario{.models = 40, .rate = 250, .requests = 100'000, .cancelled = 0.05};
  scenario.noise.outlier_probability = 0.01;
  scenario.noise.outlier_factor = 10;
  const Result result = run(scenario);
  EXPECT_GT(result.cancelled, 1000u);
  EXPECT_GT(result.served, result.requests / 2);
}

// All but the few that are let through to see whether it is still true.
TEST(WholeSystemTest, RefusesAtOnceWhatNoDeviceCouldMeet) {
  const Result result = run({.models = 5, .rate = 100, .slo = Duration::microseconds(2200), .requests = 5'000});
  EXPECT_GT(result.unmeetable, result.requests * 7 / 10);
  EXPECT_LT(result.late, result.requests / 100);
  EXPECT_EQ(result.served, 0u);
}

// A stall of seconds makes every estimate far too long. With a deadline below
// that, nothing would ever run again if estimates were not doubted.
TEST(WholeSystemTest, RecoversFromAStallThatSpoiltItsEstimates) {
  Scenario scenario{.models = 3, .rate = 100, .slo = Duration::milliseconds(50), .requests = 20'000};
  scenario.noise.outlier_probability = 0.0005;
  scenario.noise.outlier_factor = 1000;
  const Result result = run(scenario);
  EXPECT_GT(result.served, result.requests * 6 / 10);
}

TEST(WholeSystemTest, SameSeedGivesTheSameRunAndAnotherSeedAnother) {
  const Scenario scenario{.models = 60, .devices = 2, .rate = 500, .requests = 50'000};
  Scenario other = scenario;
  other.seed = 2;
  const Result first = run(scenario);
  EXPECT_EQ(first.event_hash, run(scenario).event_hash);
  EXPECT_NE(first.event_hash, run(other).event_hash);
}

TEST(WholeSystemTest, RemovesModelsUnderTraffic) {
  VirtualLoop loop;
  VirtualCluster cluster(loop, {.pages_per_device = 7 * 4, .controller = {}}, policy());
  for (uint32_t id = 0; id < 4; ++id) cluster.add_model(resnet50(id));
  uint64_t next = 1;
  for (int step = 0; step < 2000; ++step) {
    cluster.submit({.id = RequestId(next++),
                    .model = ModelId(static_cast<uint32_t>(step % 4)),
                    .arrival = loop.now(),
                    .deadline = loop.now() + Duration::milliseconds(100)});
    if (step == 1000) cluster.remove_model(ModelId(2));
    loop.run_until(loop.now() + Duration::milliseconds(3));
  }
  loop.run_until(TimePoint::infinite_future());
  cluster.checker().check_finished();
  EXPECT_TRUE(cluster.controller().model_gone(ModelId(2)));
  EXPECT_TRUE(cluster.pages_agree());
  EXPECT_EQ(cluster.checker().refused(Refusal::kUnloaded), 250u);
  EXPECT_EQ(cluster.controller().proposals_rejected(), 0u);
}

}  // namespace
}  // namespace foliot
