// INFaaS' experiments in virtual time: Figures 5, 6 and 7, and accuracy scaling under overload.
//
// Systems: Clipper+ (instances stay as they are), SM+ (one variant, replicated), INFaaS (its own
// policy and greedy rule), and ours: the cheapest variant that is predicted in time, the greedy
// rule that mixes variants (or the integer program), with the headroom of a server, and refusals of
// what would be late.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "foundation/base/random.h"
#include "load/workload/diurnal_trace.h"
#include "virtual/experiments/experiment.h"
#include "virtual/experiments/fleet_simulation.h"
#include "virtual/experiments/infaas_zoo.h"

namespace foliot {
namespace {

using Names = std::vector<std::string>;
using Row = ResultTable::Row;

const Names kAllVariants{"cpu", "inferentia", "gpu-1", "gpu-8", "gpu-32"};

struct SystemUnderTest {
  std::string name;
  FleetSystem system;
  std::vector<FleetWorkers> workers;
  std::vector<FleetTask> tasks;
};

FleetSystem clipper() { return {.policy = "infaas"}; }
FleetSystem sagemaker() { return {.policy = "infaas", .solver = "greedy"}; }
// Predictions and refusals alone: what is left is due to variants and autoscaling.
FleetSystem refusing(FleetSystem system) {
  system.policy = "predicted";
  system.refuse = true;
  return system;
}
FleetSystem infaas(bool workers) { return {.policy = "infaas", .solver = "greedy", .scale_workers = workers}; }
FleetSystem ours(const std::string& solver, bool workers) {
  return {.policy = "predicted", .refuse = true, .solver = solver, .scale_workers = workers};
}

FleetReport measure(ExperimentRun& run, const SystemUnderTest& tested, const std::vector<FleetQuery>& queries,
                    const Row& cell) {
  FleetReport report = simulate_fleet(tested.system, tested.workers, tested.tasks, queries, run.seed());
  Row row = cell;
  row["system"] = tested.name;
  row.update({{"offered", report.offered},
              {"attainment", report.attainment()},
              {"goodput", report.goodput()},
              {"violations", report.violations()},
              {"late", report.late},
              {"refused", report.refused},
              {"loads", report.loads},
              {"accuracy", report.accuracy},
              {"below_accuracy", report.below_accuracy},
              {"worker_dollars", report.worker_dollars},
              {"instance_dollars", report.instance_dollars},
              {"utilisation", report.utilisation},
              {"workers_most", report.workers_most}});
  run.table("results").add(std::move(row));
  return report;
}

std::vector<FleetQuery> poisson(const std::function<double(double)>& rate, double rate_most, double seconds,
                                uint64_t seed) {
  Random random(seed);
  std::vector<FleetQuery> queries;
  for (double at = random.exponential() / rate_most; at < seconds; at += random.exponential() / rate_most) {
    if (random.uniform() * rate_most < rate(at)) queries.push_back({Duration::from_seconds(at), 0});
  }
  return queries;
}

// Figure 5: 22 architectures, of which four have 80 % of the queries.
std::vector<FleetTask> figure_5_tasks(const Names& popular, const Names& rest, uint32_t popular_start) {
  std::vector<FleetTask> tasks;
  for (const ZooArchitecture& architecture : infaas_architectures()) {
    const bool is_popular = tasks.size() < 4;
    const Duration slo = is_popular ? Duration::milliseconds(50) : Duration::from_milliseconds(300 * architecture.work);
    // A task whose batches do not fit its SLO has none that its fixed variant could serve in time.
    tasks.push_back({.name = architecture.name,
                     .slo = slo,
                     .variants = infaas_variants(architecture, slo, is_popular ? popular : rest),
                     .start = is_popular ? popular_start : 1});
  }
  return tasks;
}

std::vector<FleetQuery> figure_5_queries(uint32_t count, uint64_t seed) {
  const std::vector<Duration> trace = diurnal_trace({.arrivals = count, .seed = seed});
  Random random(seed + 1000);
  std::vector<double> weights;
  for (size_t i = 0; i < infaas_architectures().size(); ++i)
    weights.push_back(1 / static_cast<double>(i < 4 ? i + 1 : i - 3));
  const auto draw = [&](size_t from, size_t end) {
    double sum = 0;
    for (size_t i = from; i < end; ++i) sum += weights[i];
    double at = random.uniform() * sum;
    for (size_t i = from; i < end; ++i) {
      if ((at -= weights[i]) < 0) return static_cast<uint32_t>(i);
    }
    return static_cast<uint32_t>(end - 1);
  };
  std::vector<FleetQuery> queries;
  for (const Duration at : trace) {
    queries.push_back({at, random.uniform() < 0.8 ? draw(0, 4) : draw(4, weights.size())});
  }
  return queries;
}

}  // namespace

Status run_infaas_production(ExperimentRun& run) {
  const std::vector<FleetQuery> queries = figure_5_queries(run.size(113'420u, 8'000u), run.seed());
  const std::vector<FleetWorkers> fixed{infaas_workers("cpu", 5, 5), infaas_workers("inferentia", 0, 0),
                                        infaas_workers("gpu", 7, 7)};
  // Eighteen cold tasks on ten CPU instances: the paper's 5 CPU workers have more room than ours.
  std::vector<FleetWorkers> wide = fixed;
  wide[0] = infaas_workers("cpu", 9, 9);
  const std::vector<FleetWorkers> mixed{infaas_workers("cpu", 5, 9), infaas_workers("inferentia", 2, 8),
                                        infaas_workers("gpu", 5, 7)};
  const std::vector<FleetTask> all = figure_5_tasks(kAllVariants, kAllVariants, 1);
  const std::vector<SystemUnderTest> systems{
      {"clipper+", clipper(), wide, figure_5_tasks({"gpu-8"}, {"cpu"}, 7)},
      {"sm+", sagemaker(), wide, figure_5_tasks({"gpu-8"}, {"cpu"}, 2)},
      {"clipper+ refusing", refusing(clipper()), wide, figure_5_tasks({"gpu-8"}, {"cpu"}, 7)},
      {"sm+ refusing", refusing(sagemaker()), wide, figure_5_tasks({"gpu-8"}, {"cpu"}, 2)},
      {"infaas", infaas(true), mixed, all},
      {"foliot", ours("greedy_mixed", true), mixed, all},
      {"foliot ilp", ours("ilp", true), mixed, all},
  };
  std::string text;
  std::map<std::string, FleetReport> reports;
  for (const SystemUnderTest& tested : systems) {
    const FleetReport& report = reports[tested.name] = measure(run, tested, queries, {{"trace", "diurnal"}});
    text += fmt::format("{}{}: {:.0f}/s in time, {:.2f} % violations, ${:.2f}", text.empty() ? "" : "; ", tested.name,
                        report.goodput(), 100 * report.violations(), report.worker_dollars);
  }
  run.find({"Figure 5", "-", "-", text});
  const FleetReport& here = reports["foliot"];
  const auto against = [&](const std::string& name, double throughput, double violations) {
    const FleetReport& other = reports[name];
    const double more = here.goodput() / other.goodput(), fewer = other.violations() / here.violations(),
                 cheaper = other.worker_dollars / here.worker_dollars;
    run.find({.what = fmt::format("Figure 5, foliot beside {}", name),
              .paper = fmt::format("{} times the throughput, {} times fewer violations, 1.23 times cheaper", throughput,
                                   violations),
              .goal = "as good or better",
              .here = fmt::format("{:.2f}, {:.2f}, {:.2f}", more, fewer, cheaper),
              .met = more >= throughput && fewer >= violations && cheaper >= 1.23});
  };
  against("clipper+", 1.1, 1.63);
  against("sm+", 1.3, 2.54);
  return Status();
}

// Figure 6: ResNet-50 under three loads; what counts is the cost of the instances.
Status run_infaas_scaling(ExperimentRun& run) {
  const double seconds = run.size(240.0, 40.0);
  const Duration slo = Duration::milliseconds(500);
  const ZooArchitecture resnet = infaas_architectures()[1];
  const auto task = [&](const Names& names, uint32_t start) {
    return std::vector<FleetTask>{
        {.name = "resnet50", .slo = slo, .variants = infaas_variants(resnet, slo, names), .start = start}};
  };
  const std::vector<FleetWorkers> workers{infaas_workers("cpu", 1, 1), infaas_workers("inferentia", 1, 1),
                                          infaas_workers("gpu", 1, 1)};
  const Names three{"cpu", "inferentia", "gpu-1", "gpu-8"};
  const std::vector<SystemUnderTest> systems{
      {"clipper+ gpu", clipper(), workers, task({"gpu-8"}, 4)},
      {"clipper+ cpu", clipper(), workers, task({"cpu"}, 2)},
      {"sm+ gpu", sagemaker(), workers, task({"gpu-1"}, 1)},
      {"sm+ cpu", sagemaker(), workers, task({"cpu"}, 1)},
      {"infaas", infaas(false), workers, task(three, 1)},
      {"foliot", ours("greedy_mixed", false), workers, task(three, 1)},
  };
  // How many times cheaper than Clipper+ GPU and SM+ GPU, at no fewer in time than Clipper+ GPU.
  struct Load {
    std::string name, paper;
    std::function<double(double)> rate;
    double most;
    double clipper, sagemaker;
  };
  const std::vector<Load> loads{
      {"flat, low", "21.6 times cheaper than Clipper+ GPU, 21.3 than SM+ GPU", [](double) { return 4.0; }, 4, 21.6,
       21.3},
      {"steady, high", "15 % more than SM+ GPU", [&](double at) { return 650 + 50 * at / seconds; }, 700, 1, 0},
      {"fluctuating", "3 times cheaper than Clipper+ GPU and SM+ GPU",
       [&](double at) {
         const double minute = at / seconds * 4;  // of four
         return (minute >= 1 && minute < 1.5) || (minute >= 2.5 && minute < 3) ? 80.0 : 4.0;
       },
       80, 3, 3},
  };
  for (const Load& load : loads) {
    const std::vector<FleetQuery> queries = poisson(load.rate, load.most, seconds, run.seed());
    std::string text;
    std::map<std::string, FleetReport> reports;
    for (const SystemUnderTest& tested : systems) {
      const FleetReport& report = reports[tested.name] = measure(run, tested, queries, {{"load", load.name}});
      text += fmt::format("{}{}: {:.1f}/s in time of {:.1f}, ${:.5f}", text.empty() ? "" : "; ", tested.name,
                          report.goodput(), static_cast<double>(report.offered) / report.length.to_seconds(),
                          report.instance_dollars);
    }
    const FleetReport &here = reports["foliot"], &clipper_gpu = reports["clipper+ gpu"], &sm_gpu = reports["sm+ gpu"];
    run.find({.what = "Figure 6, " + load.name,
              .paper = load.paper,
              .goal = load.sagemaker > 0 ? "as cheap, and all in time" : "all in time, as cheap as Clipper+ GPU",
              .here = text,
              .met = here.in_time >= clipper_gpu.in_time &&
                     here.instance_dollars * load.clipper <= clipper_gpu.instance_dollars &&
                     here.instance_dollars * load.sagemaker <= sm_gpu.instance_dollars});
  }
  return Status();
}

// Figure 7: a large and a small model share GPUs; the large one has 80 % of the queries.
Status run_infaas_sharing(ExperimentRun& run) {
  const std::vector<Duration> trace = diurnal_trace(
      {.arrivals = run.size(75'000u, 6'000u), .rate_least = 50, .rate_most = 500, .rate_day = 300, .seed = run.seed()});
  Random random(run.seed() + 1);
  std::vector<FleetQuery> queries;
  for (const Duration at : trace) queries.push_back({at, random.uniform() < 0.8 ? 0u : 1u});
  const auto tasks = [&](uint32_t start) {
    std::vector<FleetTask> result;
    for (const size_t i : {18u, 4u}) {  // Inception-ResNetV2, MobileNetV1
      const ZooArchitecture& architecture = infaas_architectures()[i];
      const Duration slo = Duration::milliseconds(100);
      FleetTask task{.name = architecture.name,
                     .slo = slo,
                     .variants = infaas_variants(architecture, slo, {"gpu-8"}),
                     .start = start};
      result.push_back(std::move(task));
    }
    return result;
  };
  const std::vector<SystemUnderTest> systems{
      {"clipper+", clipper(), {infaas_workers("gpu", 2, 2)}, tasks(4)},
      {"clipper+ refusing", refusing(clipper()), {infaas_workers("gpu", 2, 2)}, tasks(4)},
      {"infaas", infaas(true), {infaas_workers("gpu", 1, 2)}, tasks(1)},
      {"foliot", ours("greedy_mixed", true), {infaas_workers("gpu", 1, 2)}, tasks(1)},
  };
  std::string text;
  std::map<std::string, FleetReport> reports;
  for (const SystemUnderTest& tested : systems) {
    const FleetReport& report = reports[tested.name] =
        measure(run, tested, queries, {{"popular", "inceptionresnetv2"}});
    text += fmt::format("{}{}: {:.2f} % violations, P99 {:.0f} and {:.0f} ms, ${:.3f}", text.empty() ? "" : "; ",
                        tested.name, 100 * report.violations(), report.latency[0].quantile(0.99).to_milliseconds(),
                        report.latency[1].quantile(0.99).to_milliseconds(), report.worker_dollars);
  }
  const FleetReport &here = reports["foliot"], &fixed = reports["clipper+ refusing"];
  run.find({.what = "Figure 7",
            .paper = "10 % cheaper than one model on each of two GPUs",
            .goal = "at least that, fewer violations",
            .here = text,
            .met = here.worker_dollars <= 0.9 * fixed.worker_dollars && here.violations() < fixed.violations()});
  return Status();
}

// One task with variants of several accuracies on four GPUs, at 1 to 3 times what the most accurate
// one can take.
Status run_infaas_overload(ExperimentRun& run) {
  const Duration slo = Duration::milliseconds(100);
  const Names names{"mobilenetv1", "resnet50", "inceptionv3", "resnext101", "inceptionresnetv2"};
  std::vector<Variant> variants;
  for (const std::string& name : names) {
    const auto architecture = std::ranges::find(infaas_architectures(), name, &ZooArchitecture::name);
    variants.push_back(infaas_variants(*architecture, slo, {"gpu-8"}).front());
    variants.back().name = name;
  }
  const std::vector<FleetWorkers> workers{infaas_workers("gpu", 4, 4)};
  const double base = variants.back().saturation * 4 * 4;
  for (const double asked : {0.70, 0.75}) {
    for (const double factor : {1.0, 1.5, 2.0, 2.5, 3.0}) {
      const std::vector<FleetQuery> queries =
          poisson([&](double) { return base * factor; }, base * factor, run.size(60.0, 5.0), run.seed());
      const auto system = [&](const std::string& name, const std::string& policy, std::vector<Variant> of) {
        return SystemUnderTest{name,
                               {.policy = policy, .refuse = true, .load_all = true},
                               workers,
                               {{.name = "classify", .slo = slo, .accuracy = asked, .variants = std::move(of)}}};
      };
      std::vector<SystemUnderTest> systems{system("scaled", "scaled", variants),
                                           system("predicted", "predicted", variants)};
      for (const Variant& variant : variants) {
        if (variant.accuracy >= asked) systems.push_back(system("fixed " + variant.name, "predicted", {variant}));
      }
      const Row cell{{"accuracy_asked", asked}, {"factor", factor}};
      std::map<std::string, FleetReport> reports;
      std::string best;  // of the fixed ones
      for (const SystemUnderTest& tested : systems) {
        const FleetReport& report = reports[tested.name] = measure(run, tested, queries, cell);
        if (!tested.name.starts_with("fixed")) continue;
        if (best.empty() || report.in_time > reports[best].in_time) best = tested.name;
      }
      const FleetReport &scaled = reports["scaled"], &fixed = reports["fixed inceptionresnetv2"];
      run.find(
          {.what = fmt::format("overload {} times, accuracy of at least {}", factor, asked),
           .paper = "Proteus: up to 10 times fewer violations, 60 % more throughput",
           .goal = factor > 1 ? ">= 60 % more met than by the most accurate alone, accuracy as asked"
                              : "none below the accuracy that was asked",
           .here = fmt::format("{:.0f} % more met ({:.0f}/s instead of {:.0f}/s), mean accuracy {:.3f}, {} below "
                               "what was asked; predicted {:.0f}/s, {:.3f}; best {} {:.0f}/s, {:.3f}",
                               100 * (scaled.goodput() / fixed.goodput() - 1), scaled.goodput(), fixed.goodput(),
                               scaled.accuracy, scaled.below_accuracy, reports["predicted"].goodput(),
                               reports["predicted"].accuracy, best, reports[best].goodput(), reports[best].accuracy),
           .met = scaled.below_accuracy == 0 && (factor <= 1 || scaled.in_time >= 1.6 * fixed.in_time)});
    }
  }
  return Status();
}

}  // namespace foliot
