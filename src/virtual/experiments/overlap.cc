// Abacus, sections 7.2 to 7.4, Figures 14 to 19: queries of two, three and four models on one
// GPU, one after the other by three policies or beside each other in operator groups.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "control/policies/edf/edf_policy.h"
#include "control/policies/fcfs/fcfs_policy.h"
#include "control/policies/sjf/sjf_policy.h"
#include "virtual/experiments/experiment.h"
#include "virtual/experiments/gpu_models.h"
#include "virtual/experiments/gpu_predictor.h"
#include "virtual/experiments/overlap_run.h"

namespace foliot {
namespace {

constexpr const char* kLateDrop = " (late drop)";

// What two models have to gain, over all batch sizes of both: whole queries in turn against
// together. With this many times the answers nothing but the order of queries is left to win by.
double mean_gain(const std::vector<GpuModel>& models, const std::vector<uint32_t>& deployed) {
  double sum = 0;
  uint32_t count = 0;
  for (uint32_t one = 0; one < kGpuBuckets; ++one) {
    for (uint32_t other = 0; other < kGpuBuckets; ++other) {
      const GpuModel &a = models[deployed[0]], &b = models[deployed[1]];
      const Duration together = time_together({a.loads(one, {}), b.loads(other, {})});
      sum += (a.exec[one] + b.exec[other]).to_seconds() / together.to_seconds();
      ++count;
    }
  }
  return sum / count;
}

// The share of the device that the queries take one after the other.
double utilisation(const std::vector<GpuModel>& models, const std::vector<uint32_t>& deployed, double rate) {
  double seconds = 0;
  for (const uint32_t model : deployed) {
    for (const Duration exec : models[model].exec) seconds += exec.to_seconds();
  }
  return rate * seconds / static_cast<double>(deployed.size() * kGpuBuckets);
}

// Deadlines in multiples of the longest query: what the paper says, and what its figures amount to
// (deadlines of 50 to 150 ms, groups of 16 ms on average).
constexpr double kPaperDeadline = 2, kPaperRatio = 3.5;

struct OverlapSetting {
  double rate;
  double deadline;
  const std::vector<std::vector<uint32_t>>& deployments;

  size_t models() const { return deployments.front().size(); }
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

// The baselines as they are in the paper: a query is dropped once its deadline has passed. Here all
// others refuse what they know they cannot meet.
std::vector<RegisteredPolicy> with_late_drop(const std::vector<RegisteredPolicy>& policies) {
  using Make = std::unique_ptr<Policy> (*)(const Cluster&, QueryDrop);
  const std::map<std::string, Make> baselines{
      {"fcfs", fcfs::make_fcfs_policy}, {"sjf", sjf::make_sjf_policy}, {"edf", edf::make_edf_policy}};
  std::vector<RegisteredPolicy> all = policies;
  for (const RegisteredPolicy& policy : policies) {
    const auto found = baselines.find(policy.name);
    if (found == baselines.end()) continue;
    all.push_back({.name = policy.name + kLateDrop,
                   .summary = policy.summary,
                   .make = [make = found->second](const Cluster& c) { return make(c, QueryDrop::kExpired); }});
  }
  return all;
}

// Of overlap against each of the others, and against the best of them; of those that drop queries
// as in the paper, or of the others.
void find(ExperimentRun& run, const OverlapSetting& setting, const OverlapResults& results, bool late_drop) {
  if (!results.contains("overlap")) return;
  const bool peak = setting.rate > 50;
  const auto of = peak ? in_time : violations;
  const double own = mean(results.at("overlap"), of);
  std::string here;
  double best = peak ? 0 : 1;
  for (const auto& [policy, each] : results) {
    if (policy == "overlap" || policy.ends_with(kLateDrop) != late_drop) continue;
    const double other = mean(each, of);
    best = peak ? std::max(best, other) : std::min(best, other);
    here += fmt::format("{}{:+.1f} % ({})", here.empty() ? "" : ", ", 100 * (own / other - 1), policy);
  }
  const bool pairs = setting.models() == 2;
  if (here.empty()) return;
  run.find(
      {.what = fmt::format("{} models, {} r/s, deadline {} x the longest: {} of overlap against others{}, mean",
                           setting.models(), setting.rate, setting.deadline, peak ? "answers in time" : "violations",
                           late_drop ? " that drop queries when it is too late" : ""),
       .paper = peak ? (pairs                   ? "+25.7 to +38.1 %"
                        : setting.models() == 3 ? "+51.0 to +72.3 %"
                                                : "+38.4 to +63.4 %")
                     : (pairs ? "-38.8 to -71.0 %" : "-85.3 to -93.4 %"),
       .goal = peak ? "+29.8 %" : "-51 %",
       .here = fmt::format("{}; against the best {:+.1f} %", here, 100 * (own / best - 1)),
       .met = peak ? own >= 1.298 * best : own <= 0.49 * best});
}

// All policies on all deployments of a setting.
void measure(ExperimentRun& run, std::vector<GpuModel> models, const std::shared_ptr<const OverlapPredictor>& predictor,
             const OverlapSetting& setting) {
  for (GpuModel& model : models) model.qos = model.qos.scaled(setting.deadline / kPaperDeadline);
  OverlapResults results;
  for (const std::vector<uint32_t>& deployed : setting.deployments) {
    for (const RegisteredPolicy& policy : with_late_drop(run.policies())) {
      const auto result = OverlapRun({.make_policy = policy.make,
                                      .models = models,
                                      .deployed = deployed,
                                      .predictor = predictor,
                                      .rate = setting.rate,
                                      .duration = run.duration().value_or(Duration::seconds(run.size(100, 5))),
                                      .seed = run.seed()})
                              .run();
      results[policy.name].push_back(result);
      run.table("results").add({{"group", setting.deadline == kPaperDeadline ? "all" : "later deadlines"},
                                {"models", name_of(models, deployed)},
                                {"rate", setting.rate},
                                {"policy", policy.name},
                                {"offered", result.queries},
                                {"in_time", result.in_time},
                                {"attainment", 1 - result.violations()},
                                {"p99_of_qos", result.p99}});
    }
  }
  for (const bool late_drop : {false, true}) find(run, setting, results, late_drop);
}

}  // namespace

Status run_overlap(ExperimentRun& run) {
  const std::vector<GpuModel> models = gpu_models();
  const std::shared_ptr<const OverlapPredictor> predictor = learn_gpu_predictor(run, models);
  // Res101, Res152, VGG19 and Bert, as in section 7.4.
  const std::vector<std::vector<uint32_t>> triples{{1, 2, 5}, {1, 2, 6}, {1, 5, 6}, {2, 5, 6}};
  const std::vector<std::vector<uint32_t>> quadruple{{1, 2, 5, 6}};
  std::vector<std::vector<uint32_t>> pairs = sets_of_models(2, 7);
  if (run.quick()) pairs.resize(3);
  for (const std::vector<uint32_t>& deployed : pairs) {
    run.table("pairs").add({{"models", name_of(models, deployed)},
                            {"gain", mean_gain(models, deployed)},
                            {"utilisation_50", utilisation(models, deployed, 50)}});
  }
  for (const double deadline : {kPaperDeadline, kPaperRatio}) {
    for (const double rate : {50.0, 100.0}) {
      for (const auto* deployments :
           std::initializer_list<const std::vector<std::vector<uint32_t>>*>{&pairs, &triples, &quadruple}) {
        measure(run, models, predictor, {rate, deadline, *deployments});
      }
    }
  }
  return Status();
}

}  // namespace foliot
