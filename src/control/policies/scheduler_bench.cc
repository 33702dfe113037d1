// How fast the controller is with each policy, and whether the time of a decision
// stays the same as models and devices grow: requests per second of one core's
// time, and the time of a turn (all that is decided at one instant).
//
//   make bench-scheduler
//
// The devices are stubs in virtual time that take as long as they are expected to;
// only the controller's own time is measured. Arrivals are Poisson, uniform over
// the models, which are spread over the devices and loaded before it begins.
#include <benchmark/benchmark.h>

#include <chrono>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "control/controller/controller.h"
#include "control/policies/clockwork/clockwork_policy.h"
#include "control/policies/foliot/foliot_policy.h"
#include "foundation/base/histogram.h"
#include "foundation/base/random.h"

namespace foliot {
namespace {

constexpr Duration kSlo = Duration::milliseconds(100);
constexpr Duration kLink = Duration::microseconds(70);
constexpr uint32_t kPagesPerModel = 7;

// ResNet-50 on a V100 (Clockwork, Table 1).
std::shared_ptr<ModelInfo> resnet50(uint32_t id) {
  auto model = std::make_shared<ModelInfo>();
  model->id = ModelId(id);
  model->name = "resnet50_" + std::to_string(id);
  model->only().batch_sizes = {1, 2, 4, 8, 16};
  model->only().pages = kPagesPerModel;
  model->only().seed_load = Duration::microseconds(8330);
  model->buckets.resize(1);
  std::vector<Duration>& seeds = model->only().seed_exec.emplace_back();
  for (const double ms : {2.61, 3.78, 5.61, 9.13, 15.67}) seeds.push_back(Duration::from_milliseconds(ms));
  return model;
}

class Bench : private ActionSink, private CompletionSink {
 public:
  Bench(const Controller::PolicyFactory& make, uint32_t devices, uint32_t models, double rate)
      : models_(models), rate_(rate), busy_(devices), controller_({}, make, *this, *this) {
    const uint32_t pages = (models + devices - 1) / devices * kPagesPerModel;
    for (uint32_t i = 0; i < devices; ++i) controller_.add_device(pages, now_);
    for (uint32_t i = 0; i < models; ++i) controller_.add_model(resnet50(i), now_);
  }

  // Until every model has been asked for, and so loaded.
  void warm_up() {
    for (uint32_t model = 0; model < models_; ++model) {
      now_ += Duration::milliseconds(2);
      handle_outcomes();
      submit(ModelId(model));
      turn();
    }
    next_arrival_ = now_;
    run(models_ / 10 + 1000);
    turns_ = Histogram();
    busy_time_ = Duration();
    served_ = 0;
  }

  void run(uint64_t requests) {
    while (requests > 0) {
      const TimePoint next =
          std::min(next_arrival_, std::min(outcomes_.empty() ? wake_ : outcomes_.top().arrival, wake_));
      now_ = std::max(now_, next);
      handle_outcomes();
      while (next_arrival_ <= now_ && requests > 0) {
        submit(ModelId(static_cast<uint32_t>(random_.below(models_))));
        next_arrival_ += Duration::from_seconds(random_.exponential() / rate_);
        --requests;
      }
      turn();
    }
  }

  Duration busy_time() const { return busy_time_; }
  uint64_t served() const { return served_; }
  const Histogram& turns() const { return turns_; }

 private:
  using Clock = std::chrono::steady_clock;

  // Less what reading the clock takes, which is a quarter of what the quickest calls do.
  template <typename Call>
  Duration timed(Call call) {
    const Duration took = std::max(by_the_clock(call) - clock_cost_, Duration());
    busy_time_ += took;
    return took;
  }
  template <typename Call>
  static Duration by_the_clock(Call call) {
    const auto start = Clock::now();
    call();
    return Duration::nanoseconds(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
  }
  static Duration clock_cost() {
    Duration least = Duration::max();
    for (int i = 0; i < 1000; ++i) least = std::min(least, by_the_clock([] {}));
    return least;
  }

  void submit(ModelId model) {
    ++requests_;
    const Request request{
        .id = RequestId(requests_), .model = model, .arrival = now_, .deadline = now_ + kSlo, .sequence = requests_};
    timed([&] { controller_.on_request(request, now_); });
  }
  void turn() {
    turns_.record(timed([&] { wake_ = controller_.turn(now_); }));
  }
  void handle_outcomes() {
    while (!outcomes_.empty() && outcomes_.top().arrival <= now_) {
      const Outcome outcome = outcomes_.top().outcome();
      outcomes_.pop();
      timed([&] { controller_.on_outcome(outcome, now_); });
    }
  }
  void send(const Action& action) override {
    if (action.type == ActionType::kUnload) return;
    TimePoint& busy = busy_[action.device.value()][action.type == ActionType::kLoad ? 0 : 1];
    const TimePoint start = std::max({busy, now_ + kLink, action.earliest});
    busy = start + action.expected;
    outcomes_.push({busy + kLink, start, action.expected, action.id, action.type, action.device, action.model});
  }
  void complete(const Completion& completion) override { served_ += completion.served() ? 1 : 0; }

  // What is needed of an action to make its outcome. Small, since sending is part of a turn.
  struct Running {
    TimePoint arrival;  // when the controller gets its outcome
    TimePoint start;
    Duration duration;
    ActionId action;
    ActionType type;
    DeviceId device;
    ModelId model;

    Outcome outcome() const {
      return {.action = action,
              .type = type,
              .device = device,
              .model = model,
              .start = start,
              .end = start + duration,
              .duration = duration,
              .output_end = start + duration};
    }
    bool operator>(const Running& other) const {
      return std::pair(arrival, action) > std::pair(other.arrival, other.action);
    }
  };

  const uint32_t models_;
  const double rate_;
  Random random_{1};
  TimePoint now_;
  TimePoint next_arrival_;
  TimePoint wake_ = TimePoint::infinite_future();
  uint64_t requests_ = 0;
  uint64_t served_ = 0;
  std::priority_queue<Running, std::vector<Running>, std::greater<>> outcomes_;
  std::vector<std::array<TimePoint, 2>> busy_;
  const Duration clock_cost_ = clock_cost();
  Duration busy_time_;
  Histogram turns_;
  Controller controller_;
};

void measure(benchmark::State& state, const Controller::PolicyFactory& make) {
  const auto devices = static_cast<uint32_t>(state.range(0));
  const auto models = static_cast<uint32_t>(state.range(1));
  const double rate = static_cast<double>(state.range(2)) * devices;
  Bench bench(make, devices, models, rate);
  bench.warm_up();
  constexpr uint64_t kRequests = 200'000;
  uint64_t requests = 0;
  for (auto _ : state) {
    const Duration before = bench.busy_time();
    bench.run(kRequests);
    requests += kRequests;
    state.SetIterationTime((bench.busy_time() - before).to_seconds());
  }
  state.counters["requests/s"] = static_cast<double>(requests) / bench.busy_time().to_seconds();
  state.counters["served_%"] = 100.0 * static_cast<double>(bench.served()) / static_cast<double>(requests);
  state.counters["turn_us_p50"] = bench.turns().quantile(0.5).to_microseconds();
  state.counters["turn_us_p99.9"] = bench.turns().quantile(0.999).to_microseconds();
  state.counters["turn_us_mean"] = bench.turns().mean().to_microseconds();
}

void foliot_scheduler(benchmark::State& state) {
  measure(state, [](const Cluster& cluster) { return foliot_policy::make_foliot_policy(cluster); });
}
void clockwork_scheduler(benchmark::State& state) {
  measure(state, [](const Cluster& cluster) { return clockwork::make_clockwork_policy(cluster); });
}

// Devices, models, requests per second and device.
void grid(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"devices", "models", "rate"})->UseManualTime()->Iterations(5)->Unit(benchmark::kMillisecond);
  for (const int64_t rate : {250, 800}) benchmark->Args({1, 10, rate});
  for (const int64_t models : {100, 1000, 10'000}) benchmark->Args({1, models, 250});
  for (const int64_t devices : {10, 100, 1000}) benchmark->Args({devices, 10'000, 250});
}
BENCHMARK(foliot_scheduler)->Apply(grid);
BENCHMARK(clockwork_scheduler)->Apply(grid);

}  // namespace
}  // namespace foliot
