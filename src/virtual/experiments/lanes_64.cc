// 64 simulated cores and 200 models, small and large: one device of which each batch gets as many
// lanes as the policy gives it, beside devices of a fixed number of cores each (static streams).
// For the policy foliot also with few models, and with some that are asked for far more than others.
//
// An EXEC divides nine tenths of its time among cores (Amdahl's law); a profile is of all 64.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "load/workload/profile_table.h"
#include "virtual/experiments/experiment.h"
#include "virtual/world/virtual_cluster.h"

namespace foliot {
namespace {

constexpr uint32_t kCores = 64;
constexpr uint64_t kManyPageBytes = uint64_t{16} << 20;
constexpr Duration kManySlo = Duration::milliseconds(100);
constexpr double kParallelShare = 0.9;
// From the V100 table: of each profile as many models.
constexpr std::array<const char*, 3> kManyProfiles{"resnet18", "resnet50", "densenet169"};

// How the cores are divided: devices, and lanes of each.
struct Division {
  const char* name;
  uint32_t devices;
  uint32_t lanes;
};
constexpr std::array<Division, 5> kDivisions{
    {{"lanes", 1, kCores}, {"1 x 64", 1, 1}, {"4 x 16", 4, 1}, {"16 x 4", 16, 1}, {"64 x 1", kCores, 1}}};

// What is asked for.
struct Mix {
  const char* name;
  uint32_t models;
  double zipf;  // exponent of Zipf's law; 0: all models alike
};
constexpr std::array<Mix, 3> kMixes{{{"all", 200, 0}, {"few", 6, 0}, {"skewed", 200, 1}}};

// Counts EXECs by the cores that they took.
class WidthWatch : public Observer {
 public:
  explicit WidthWatch(uint32_t cores_per_lane) : cores_per_lane_(cores_per_lane) {}
  void on_outcome(const Action& action, const Outcome& outcome, TimePoint /*now*/) override {
    if (action.type == ActionType::kInfer && outcome.done()) execs[action.lanes.count * cores_per_lane_] += 1;
  }
  std::map<uint32_t, uint64_t> execs;

 private:
  const uint32_t cores_per_lane_;
};

class ManyModelsRun {
 public:
  ManyModelsRun(const RegisteredPolicy& policy, const Mix& mix, const Division& division, double rate,
                Duration duration, uint64_t seed)
      : mix_(mix),
        division_(division),
        rate_(rate),
        duration_(duration),
        random_(seed),
        widths_(kCores / division.devices / division.lanes),
        cluster_(loop_, options(division, seed), policy.make,
                 [this](const Completion& completion) { on_completion(completion); }) {
    cluster_.controller().add_observer(widths_);
    double sum = 0;
    for (uint32_t id = 0; id < mix.models; ++id) {
      cluster_.add_model(model(id));
      shares_.push_back(sum += std::pow(id + 1, -mix.zipf));
    }
  }

  void run() {
    // All models are loaded before anything counts.
    for (uint32_t turn = 0; turn < division_.devices; ++turn) {
      for (uint32_t id = 0; id < mix_.models; ++id) submit(id, TimePoint::infinite_future());
    }
    loop_.run_until(loop_.now() + Duration::seconds(60));
    widths_.execs.clear();
    end_ = loop_.now() + duration_;
    arrive();
    loop_.run_until(end_ + Duration::seconds(2));
    cluster_.checker().check_finished();
    std::ranges::sort(latencies_);
  }
  uint64_t offered() const { return offered_; }
  uint64_t in_time() const { return latencies_.size(); }
  double milliseconds(double quantile) const {
    if (latencies_.empty()) return 0;
    const auto last = static_cast<double>(latencies_.size() - 1);
    return latencies_[static_cast<size_t>(quantile * last)];
  }
  const std::map<uint32_t, uint64_t>& execs() const { return widths_.execs; }

 private:
  static VirtualClusterOptions options(const Division& division, uint64_t seed) {
    return {.seed = seed + 1,
            .devices = division.devices,
            .pages_per_device = 16'384,  // all models
            .lanes = {.count = division.lanes, .parallel_share = kParallelShare},
            .noise = {.exec_deviation = 0.01},
            // By default 32 of a device, however many lanes it has.
            .controller = {.infers_outstanding_max = 32 * division.lanes}};
  }
  // Of a device of fewer cores the EXECs take longer.
  std::shared_ptr<const ModelInfo> model(uint32_t id) const {
    const ModelProfile* profile = ProfileTable::v100().find(kManyProfiles[id % kManyProfiles.size()]);
    auto info = make_model_info(*profile, ModelId(id), fmt::format("model-{}", id), kManyPageBytes);
    const SimulatedLanes all{.count = kCores, .parallel_share = kParallelShare};
    const double slowdown = all.slowdown(kCores / division_.devices);
    for (auto& seeds : info->only().seed_exec) {
      for (Duration& seed : seeds) seed = seed.scaled(slowdown);
    }
    return info;
  }
  void submit(uint32_t model, TimePoint deadline) {
    ++sent_;
    cluster_.submit({.id = RequestId(sent_),
                     .model = ModelId(model),
                     .payload = PayloadHandle(sent_),
                     .arrival = loop_.now(),
                     .deadline = deadline});
  }
  uint32_t draw() {
    if (mix_.zipf == 0) return static_cast<uint32_t>(random_.below(mix_.models));
    const auto found = std::ranges::lower_bound(shares_, random_.uniform() * shares_.back());
    return static_cast<uint32_t>(found - shares_.begin());
  }
  void arrive() {
    if (loop_.now() >= end_) return;
    ++offered_;
    submit(draw(), loop_.now() + kManySlo);
    loop_.at(loop_.now() + Duration::from_seconds(random_.exponential() / rate_), [this] { arrive(); });
  }
  void on_completion(const Completion& completion) {
    if (completion.deadline.is_infinite() || !completion.served()) return;
    latencies_.push_back((completion.finished - completion.arrival).to_milliseconds());
  }

  const Mix mix_;
  const Division division_;
  const double rate_;
  const Duration duration_;
  Random random_;
  WidthWatch widths_;
  VirtualLoop loop_;
  VirtualCluster cluster_;
  TimePoint end_;
  uint64_t sent_ = 0;
  uint64_t offered_ = 0;
  std::vector<double> latencies_;
  std::vector<double> shares_;  // of requests, by model, summed up
};

// What lanes answer in time against the best division at each load.
void find_best(ExperimentRun& run, const Mix& mix, double rate, const std::map<std::string, uint64_t>& in_time) {
  const auto own = in_time.find("foliot, lanes");
  if (own == in_time.end()) return;
  std::pair<std::string, uint64_t> best;
  for (const auto& [name, count] : in_time) {
    if (!name.ends_with("lanes") && count > best.second) best = {name, count};
  }
  run.find(
      {.what = fmt::format("64 cores, {} models ({}), {:.0f} r/s: answers in time with lanes against the best "
                           "fixed division",
                           mix.models, mix.name, rate),
       .paper = "-",
       .goal = "as good or better",
       .here = fmt::format("{:+.1f} % ({})",
                           100 * (static_cast<double>(own->second) / static_cast<double>(best.second) - 1), best.first),
       .met = own->second >= best.second});
}

void add_widths(ExperimentRun& run, const Mix& mix, double rate, const std::string& policy,
                const std::map<uint32_t, uint64_t>& execs) {
  uint64_t all = 0;
  for (const auto& [cores, count] : execs) all += count;
  for (const auto& [cores, count] : execs) {
    run.table("widths").add({{"group", mix.name},
                             {"policy", policy},
                             {"rate", rate},
                             {"cores", cores},
                             {"share", static_cast<double>(count) / static_cast<double>(all)}});
  }
}

void run_at(ExperimentRun& run, const Mix& mix, double rate, Duration duration) {
  std::map<std::string, uint64_t> in_time;
  for (const RegisteredPolicy& policy : run.policies()) {
    const bool foliot = policy.name.starts_with("foliot");
    if (mix.name != std::string_view("all") && !foliot) continue;
    for (const Division& division : kDivisions) {
      // Others take all lanes for each batch: one wide device.
      if (division.lanes > 1 && !foliot) continue;
      ManyModelsRun own(policy, mix, division, rate, duration, run.seed());
      own.run();
      const std::string name = fmt::format("{}, {}", policy.name, division.name);
      in_time[name] = own.in_time();
      run.table("results").add({{"group", mix.name},
                                {"rate", rate},
                                {"policy", name},
                                {"offered", own.offered()},
                                {"in_time", own.in_time()},
                                {"attainment", static_cast<double>(own.in_time()) / static_cast<double>(own.offered())},
                                {"p50_ms", own.milliseconds(0.5)},
                                {"p99_ms", own.milliseconds(0.99)}});
      if (division.lanes > 1) add_widths(run, mix, rate, policy.name, own.execs());
    }
  }
  find_best(run, mix, rate, in_time);
}

}  // namespace

Status run_lanes_64(ExperimentRun& run) {
  const Duration duration = run.duration().value_or(Duration::from_seconds(run.size(20.0, 1.0)));
  for (const Mix& mix : kMixes) {
    for (const double rate : {100.0, 400.0, 800.0, 1600.0, 2400.0, 2800.0, 4000.0}) run_at(run, mix, rate, duration);
  }
  return Status();
}

}  // namespace foliot
