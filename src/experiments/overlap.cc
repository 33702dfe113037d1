// Abacus, sections 7.2 to 7.4, Figures 14 to 19: queries of two, three and four models on one
// GPU, one after the other by three policies or beside each other in operator groups.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "controller/rolling_duration_model.h"
#include "experiments/experiment.h"
#include "experiments/gpu_models.h"
#include "sim/virtual_cluster.h"

namespace foliot {
namespace {

constexpr uint32_t kGpuLanes = 4;
constexpr uint32_t kGpuContexts = 8;  // of this group and of the next
// What is left of the spread of durations when the group is known (section 5.2).
constexpr double kGpuDeviation = 0.02;

// Queries of some models, and what came of them under one policy.
class OverlapRun {
 public:
  struct Result {
    uint64_t queries = 0;
    uint64_t in_time = 0;
    double p99 = 0;  // of answers, as a share of their QoS targets
    double violations() const { return 1 - static_cast<double>(in_time) / static_cast<double>(queries); }
  };

  OverlapRun(const RegisteredPolicy& policy, const std::vector<GpuModel>& models, std::vector<uint32_t> deployed,
             std::shared_ptr<const OverlapPredictor> predictor, double rate, Duration duration, uint64_t seed)
      : models_(models),
        deployed_(std::move(deployed)),
        rate_(rate),
        duration_(duration),
        random_(seed),
        cluster_(loop_, options(models, std::move(predictor), seed), policy.make,
                 [this](const Completion& completion) { on_completion(completion); }) {
    for (uint32_t id = 0; id < models.size(); ++id) cluster_.add_model(models[id].info(ModelId(id)));
  }

  Result run() {
    for (const uint32_t id : deployed_) submit(id, 0, TimePoint::infinite_future());  // loads it
    loop_.run_until(loop_.now() + Duration::seconds(1));
    end_ = loop_.now() + duration_;
    arrive();
    loop_.run_until(end_ + Duration::seconds(2));
    cluster_.checker().check_finished();
    FOLIOT_CHECK(cluster_.controller().proposals_rejected() == 0);
    std::ranges::sort(latencies_);
    if (!latencies_.empty()) result_.p99 = latencies_[latencies_.size() * 99 / 100];
    return result_;
  }

 private:
  static VirtualClusterOptions options(const std::vector<GpuModel>& models,
                                       std::shared_ptr<const OverlapPredictor> predictor, uint64_t seed) {
    VirtualClusterOptions options{.seed = seed + 1,
                                  .lanes = {.count = kGpuLanes, .parallel_share = 0},
                                  .contexts = kGpuContexts,
                                  .noise = {.exec_deviation = kGpuDeviation}};
    auto resources = std::make_shared<ResourceTable>();
    for (const GpuModel& model : models) resources->push_back(model.shares);
    options.resources = std::move(resources);
    options.make_durations = [predictor] { return std::make_unique<RollingDurationModel>(predictor); };
    return options;
  }

  void submit(uint32_t model, uint16_t bucket, TimePoint deadline) {
    ++sent_;
    cluster_.submit({.id = RequestId(sent_),
                     .model = ModelId(model),
                     .bucket = BucketId(bucket),
                     .payload = PayloadHandle(sent_),
                     .arrival = loop_.now(),
                     .deadline = deadline});
  }

  void arrive() {
    if (loop_.now() >= end_) return;
    const uint32_t model = deployed_[random_.below(deployed_.size())];
    ++result_.queries;
    submit(model, static_cast<uint16_t>(random_.below(kGpuBuckets)), loop_.now() + models_[model].qos);
    loop_.at(loop_.now() + Duration::from_seconds(random_.exponential() / rate_), [this] { arrive(); });
  }

  void on_completion(const Completion& completion) {
    if (completion.deadline.is_infinite() || !completion.served()) return;
    ++result_.in_time;
    const Duration qos = models_[completion.model.value()].qos;
    latencies_.push_back((completion.finished - completion.arrival).to_seconds() / qos.to_seconds());
  }

  const std::vector<GpuModel>& models_;
  const std::vector<uint32_t> deployed_;
  const double rate_;
  const Duration duration_;
  Random random_;
  VirtualLoop loop_;
  VirtualCluster cluster_;
  TimePoint end_;
  uint64_t sent_ = 0;
  Result result_;
  std::vector<double> latencies_;
};

// All sets of so many of the models.
std::vector<std::vector<uint32_t>> sets_of(uint32_t size, uint32_t models) {
  std::vector<std::vector<uint32_t>> sets;
  for (uint32_t bits = 0; bits < 1U << models; ++bits) {
    if (std::popcount(bits) != static_cast<int>(size)) continue;
    std::vector<uint32_t>& set = sets.emplace_back();
    for (uint32_t model = 0; model < models; ++model) {
      if ((bits >> model & 1) != 0) set.push_back(model);
    }
  }
  return sets;
}

std::vector<ModelId> ids_of(const std::vector<uint32_t>& set) {
  std::vector<ModelId> ids;
  for (const uint32_t model : set) ids.emplace_back(model);
  return ids;
}

std::vector<MlpSample> samples_of(const std::vector<GpuModel>& models, uint32_t size, uint32_t of_each,
                                  std::span<const ModelId> all, Random& random) {
  std::vector<MlpSample> samples;
  for (const std::vector<uint32_t>& set : sets_of(size, static_cast<uint32_t>(models.size()))) {
    std::vector<GpuModel> own;
    for (const uint32_t model : set) own.push_back(models[model]);
    for (uint32_t i = 0; i < of_each; ++i) samples.push_back(learnable(sample_group(own, ids_of(set), random), all));
  }
  return samples;
}

// One predictor for all pairs, triples and quadruples (section 5.5).
std::shared_ptr<const OverlapPredictor> learn(ExperimentRun& run, const std::vector<GpuModel>& models) {
  Random random(17);
  std::vector<ModelId> all;
  for (uint32_t id = 0; id < models.size(); ++id) all.emplace_back(id);
  std::vector<MlpSample> training;
  std::map<uint32_t, std::vector<MlpSample>> held_out;
  for (const uint32_t size : {2u, 3u, 4u}) {
    const uint32_t of_each = run.size(size == 2 ? 2000 : 600, 100);
    const std::vector<MlpSample> samples = samples_of(models, size, of_each, all, random);
    for (const MlpSample& sample : samples) (random.uniform() < 0.8 ? training : held_out[size]).push_back(sample);
  }
  Mlp mlp(static_cast<uint32_t>(all.size()) * OverlapPredictor::kFeatures, random);
  mlp.train(training, {.epochs = run.size(40u, 10u)}, random);
  for (const auto& [size, samples] : held_out) {
    const char* const paper = size == 2 ? "5.7 %" : size == 3 ? "4.9 %" : "6.4 %";
    run.find({.what = fmt::format("prediction error, held out, {} models", size),
              .paper = paper,
              .goal = "<= 5.7 %",
              .here = fmt::format("{:.1f} %", 100 * mlp.error(samples))});
  }
  return std::make_shared<const OverlapPredictor>(std::move(all), std::move(mlp));
}

struct OverlapSetting {
  uint32_t models;
  double rate;
  std::vector<std::vector<uint32_t>> deployments;
};

std::string name_of(const std::vector<GpuModel>& models, const std::vector<uint32_t>& deployed) {
  std::string name;
  for (const uint32_t model : deployed) name += (name.empty() ? "" : "+") + models[model].name;
  return name;
}

using OverlapResults = std::map<std::string, std::vector<OverlapRun::Result>>;  // by policy

double mean(const std::vector<OverlapRun::Result>& results, double (*of)(const OverlapRun::Result&)) {
  double sum = 0;
  for (const OverlapRun::Result& result : results) sum += of(result);
  return results.empty() ? 0 : sum / static_cast<double>(results.size());
}

double in_time(const OverlapRun::Result& result) { return static_cast<double>(result.in_time); }
double violations(const OverlapRun::Result& result) { return result.violations(); }

// Of overlap against each of the others, and against the best of them.
void find(ExperimentRun& run, const OverlapSetting& setting, const OverlapResults& results) {
  if (!results.contains("overlap")) return;
  const bool peak = setting.rate > 50;
  const auto of = peak ? in_time : violations;
  const double own = mean(results.at("overlap"), of);
  std::string here;
  double best = peak ? 0 : 1;
  for (const auto& [policy, each] : results) {
    if (policy == "overlap") continue;
    const double other = mean(each, of);
    best = peak ? std::max(best, other) : std::min(best, other);
    here += fmt::format("{}{:+.1f} % ({})", here.empty() ? "" : ", ", 100 * (own / other - 1), policy);
  }
  const bool pairs = setting.models == 2;
  run.find({.what = fmt::format("{} models, {} r/s: {} of overlap against others, mean", setting.models, setting.rate,
                                peak ? "answers in time" : "violations"),
            .paper = peak ? (pairs                 ? "+25.7 to +38.1 %"
                             : setting.models == 3 ? "+51.0 to +72.3 %"
                                                   : "+38.4 to +63.4 %")
                          : (pairs ? "-38.8 to -71.0 %" : "-85.3 to -93.4 %"),
            .goal = peak ? "+29.8 %" : "-51 %",
            .here = fmt::format("{}; against the best {:+.1f} %", here, 100 * (own / best - 1))});
}

}  // namespace

Status run_overlap(ExperimentRun& run) {
  const std::vector<GpuModel> models = gpu_models();
  const std::shared_ptr<const OverlapPredictor> predictor = learn(run, models);
  const Duration duration = run.duration().value_or(Duration::seconds(run.size(100, 5)));
  // Res101, Res152, VGG19 and Bert, as in section 7.4.
  const std::vector<std::vector<uint32_t>> triples{{1, 2, 5}, {1, 2, 6}, {1, 5, 6}, {2, 5, 6}};
  std::vector<std::vector<uint32_t>> pairs = sets_of(2, 7);
  if (run.quick()) pairs.resize(3);
  const std::vector<OverlapSetting> settings{{2, 50, pairs},    {2, 100, pairs},         {3, 50, triples},
                                             {3, 100, triples}, {4, 50, {{1, 2, 5, 6}}}, {4, 100, {{1, 2, 5, 6}}}};
  for (const OverlapSetting& setting : settings) {
    OverlapResults results;
    for (const std::vector<uint32_t>& deployed : setting.deployments) {
      for (const RegisteredPolicy& policy : run.policies()) {
        const auto result = OverlapRun(policy, models, deployed, predictor, setting.rate, duration, run.seed()).run();
        results[policy.name].push_back(result);
        run.table("results").add({{"group", "all"},
                                  {"models", name_of(models, deployed)},
                                  {"rate", setting.rate},
                                  {"policy", policy.name},
                                  {"offered", result.queries},
                                  {"in_time", result.in_time},
                                  {"attainment", 1 - result.violations()},
                                  {"p99_of_qos", result.p99}});
      }
    }
    find(run, setting, results);
  }
  return Status();
}

}  // namespace foliot
