#include "virtual/bounds/clairvoyant_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "load/workload/workload_arrivals.h"
#include "virtual/bounds/batch_relaxation.h"
#include "virtual/bounds/bound_model.h"
#include "virtual/bounds/price_curve.h"
#include "virtual/bounds/residency_relaxation.h"

namespace foliot {
namespace {

constexpr double kFastestDeviations = 6;
constexpr double kAllowedDeviations = 5;
constexpr double kRounding = 1e-8;  // of durations, in seconds
constexpr double kWindowMin = 2e-3;
constexpr size_t kWindowsMax = 8192;
constexpr uint32_t kRefinements = 3;  // prices begin in windows of 2^kRefinements times the width

// The steps of Adam (Kingma and Ba, 2015) on prices, in units in which prices are about 1.
constexpr double kFirstStep = 0.06;
constexpr double kLastStep = 0.0005;
constexpr double kMeanDecay = 0.8;
constexpr double kSquareDecay = 0.95;

// ---- What there is to serve ----

struct BoundModelRequests {
  size_t kind = 0;
  std::vector<BoundRequest> requests;
};

struct BoundProblem {
  double devices = 1;
  double pages = 0;  // that models can take on one device
  double horizon = 0;
  double slo_min = std::numeric_limits<double>::infinity();
  bool warm = false;
  uint64_t best_effort = 0;
  uint64_t offered = 0;
  std::vector<BoundKind> kinds;
  std::vector<BoundModelRequests> models;
};

double fastest(double mean, double deviation) {
  return std::max(mean - kFastestDeviations * deviation, mean / 2) - kRounding;
}

BoundKind make_kind(const ModelProfile& profile, const SimulationOptions& options) {
  const NoiseOptions& noise = options.noise;
  double factor = noise.outlier_probability > 0 ? std::min(noise.outlier_factor, 1.0) : 1;
  const auto length = [&](Duration duration, double share, Duration jitter) {
    const double mean = duration.to_seconds() * factor;
    const double deviation = std::hypot(share * mean, jitter.to_seconds());
    return ActionLength{mean, deviation, fastest(mean, deviation)};
  };
  // The jitter of LOADs only makes them longer.
  BoundKind kind{.pages = make_model_info(profile, ModelId(0), "", options.page_bytes)->only().pages,
                 .load = length(profile.load, noise.load_deviation, Duration()),
                 .sizes = profile.batch_sizes,
                 .copy = noise.copy.to_seconds()};
  double speed = 1;
  for (const DeviceSpeed& measured : noise.exec_speeds) speed = std::max(speed, measured.speed);
  factor /= speed;
  for (const Duration exec : profile.exec) {
    kind.exec.push_back(noise.exec_speeds.empty() ? length(exec, noise.exec_deviation, noise.exec_jitter)
                                                  : length(exec, 0, Duration()));
  }
  return kind;
}

// How many of a device's pages models of these sizes can fill.
double fillable_pages(const std::vector<BoundKind>& kinds, uint64_t pages) {
  std::vector<bool> reachable(pages + 1);
  reachable[0] = true;
  uint64_t most = 0;
  for (uint64_t filled = 1; filled <= pages; ++filled) {
    for (const BoundKind& kind : kinds) {
      if (kind.pages <= filled && reachable[filled - kind.pages]) reachable[filled] = true;
    }
    if (reachable[filled]) most = filled;
  }
  return static_cast<double>(most);
}

Status check(const SimulationOptions& options, const Workload& workload, const ProfileTable& profiles) {
  for (const Stream& stream : workload.streams) {
    if (stream.concurrency > 0) {
      return Status::invalid_argument(
          fmt::format("stream '{}' is a closed loop, whose requests come when others are answered: there is no "
                      "clairvoyant bound",
                      stream.name));
    }
  }
  for (const ModelGroup& group : workload.groups) {
    if (profiles.find(group.profile) == nullptr) {
      return Status::invalid_argument(fmt::format("models '{}': there is no profile '{}'; there are {}", group.name,
                                                  group.profile, profiles.names()));
    }
  }
  if (options.warm_up < options.duration && options.devices > 0 && options.page_bytes > 0) return Status();
  return Status::invalid_argument("the simulation has no devices, no pages, or nothing after its warm_up");
}

Result<BoundProblem> make_problem(const SimulationOptions& options, const Workload& workload,
                                  const ProfileTable& profiles) {
  FOLIOT_RETURN_IF_ERROR(check(options, workload, profiles));
  FOLIOT_ASSIGN_OR_RETURN(WorkloadArrivals arrivals, WorkloadArrivals::make(workload, options.seed));
  BoundProblem problem{.devices = static_cast<double>(options.devices),
                       .warm = options.preload || options.warm_up > Duration()};
  for (const ModelGroup& group : workload.groups) {
    problem.kinds.push_back(make_kind(*profiles.find(group.profile), options));
  }
  problem.pages = fillable_pages(problem.kinds, options.page_cache_bytes / options.page_bytes);
  for (const uint32_t group : workload.group_of_models()) problem.models.push_back({.kind = group});
  const double link = options.link.to_seconds();
  problem.horizon = (options.duration - options.warm_up).to_seconds();
  for (auto arrival = arrivals.next(); arrival && arrival->at < options.duration; arrival = arrivals.next()) {
    if (arrival->at < options.warm_up) continue;
    ++problem.offered;
    if (arrival->best_effort()) {
      ++problem.best_effort;
      continue;
    }
    const double at = (arrival->at - options.warm_up).to_seconds();
    const double slo = arrival->slo.to_seconds();
    problem.slo_min = std::min(problem.slo_min, slo);
    problem.horizon = std::max(problem.horizon, at + slo);
    std::vector<BoundRequest>& requests = problem.models[arrival->model].requests;
    const double due = requests.empty() ? 0 : requests.back().due;
    requests.push_back({at + link, std::max(at + slo, due)});
  }
  std::erase_if(problem.models, [](const BoundModelRequests& model) { return model.requests.empty(); });
  return problem;
}

// ---- The dual problem ----

// The price of one resource, and how the subgradient method moves it.
struct Multiplier {
  PriceCurve curve;
  double capacity;  // at each instant
  double unit;      // a price per second that is about right
  std::vector<double> use{};
  std::vector<double> mean{}, square{};

  void refine() {
    curve.refine();
    const auto halved = [](std::vector<double>& values) {
      std::vector<double> twice;
      for (const double value : values) twice.insert(twice.end(), 2, value);
      values = std::move(twice);
    };
    halved(mean);
    halved(square);
  }
  void step(double length) {
    const size_t windows = curve.windows();
    mean.resize(windows);
    square.resize(windows);
    std::vector<double> prices = curve.prices();
    for (size_t i = 0; i < windows; ++i) {
      const double excess = use[i] / (curve.width() * capacity) - 1;
      mean[i] += (1 - kMeanDecay) * (excess - mean[i]);
      square[i] += (1 - kSquareDecay) * (excess * excess - square[i]);
      prices[i] = std::max(prices[i] + length * unit * mean[i] / (std::sqrt(square[i]) + 1e-3), 0.0);
    }
    curve.set_prices(std::move(prices));
  }
  double worth() const { return capacity * curve.total(); }
};

class ClairvoyantDual {
 public:
  ClairvoyantDual(const BoundProblem& problem, double width, size_t windows)
      : problem_(problem),
        exec_{PriceCurve(width, windows), problem.devices,
              1 / mean_of([](const BoundKind& kind) { return kind.exec.front().mean; })},
        load_{PriceCurve(width, windows), problem.devices, 1 / mean_load()},
        memory_{PriceCurve(width, windows), problem.devices * problem.pages, 1 / (problem.pages * mean_load())} {
    for (const BoundKind& kind : problem.kinds) {
      batches_.push_back(std::make_unique<BatchRelaxation>(kind, exec_.curve));
      stays_.push_back(std::make_unique<ResidencyRelaxation>(kind, problem.warm, load_.curve, memory_.curve));
    }
  }

  // What requests with a deadline can be answered at these prices, at most.
  double evaluate(bool certify) {
    for (Multiplier* each : {&exec_, &load_, &memory_}) each->use.assign(each->curve.windows(), 0);
    for (size_t kind = 0; kind < batches_.size(); ++kind) {
      batches_[kind]->update();
      stays_[kind]->update();
    }
    double value = exec_.worth() + load_.worth() + memory_.worth();
    for (const BoundModelRequests& model : problem_.models) {
      BatchRelaxation& batches = *batches_[model.kind];
      ResidencyRelaxation& stays = *stays_[model.kind];
      batches.solve(model.requests);
      if (certify) batches.certify();
      value += stays.solve(model.requests, batches.worths());
      batches.add_use(stays.covered(), exec_.use);
      stays.add_use(load_.use, memory_.use);
    }
    return value;
  }

  void step(double length) {
    for (Multiplier* each : {&exec_, &load_, &memory_}) each->step(length);
  }
  void refine() {
    for (Multiplier* each : {&exec_, &load_, &memory_}) each->refine();
  }

  using Prices = std::array<std::vector<double>, 3>;
  Prices prices() const { return {exec_.curve.prices(), load_.curve.prices(), memory_.curve.prices()}; }
  void set_prices(Prices prices) {
    exec_.curve.set_prices(std::move(prices[0]));
    load_.curve.set_prices(std::move(prices[1]));
    memory_.curve.set_prices(std::move(prices[2]));
  }
  const Multiplier& exec() const { return exec_; }
  const Multiplier& load() const { return load_; }
  const Multiplier& memory() const { return memory_; }

 private:
  template <typename Value>
  double mean_of(const Value& value) const {
    double sum = 0;
    for (const BoundKind& kind : problem_.kinds) sum += value(kind);
    return sum / static_cast<double>(problem_.kinds.size());
  }
  double mean_load() const {
    return mean_of([](const BoundKind& kind) { return kind.load.mean; });
  }

  const BoundProblem& problem_;
  Multiplier exec_, load_, memory_;
  std::vector<std::unique_ptr<BatchRelaxation>> batches_;    // by kind
  std::vector<std::unique_ptr<ResidencyRelaxation>> stays_;  // by kind
};

// Standard deviation of what all actions cost less what they were expected to: actions
// of one kind take all devices' time at most, each differs by its own deviation at the
// highest price.
double cost_deviation(const BoundProblem& problem, const ClairvoyantDual& dual) {
  double exec = 0, load = 0;  // variance per second of action
  for (const BoundKind& kind : problem.kinds) {
    load = std::max(load, kind.load.deviation * kind.load.deviation / kind.load.fastest);
    for (const ActionLength& length : kind.exec) {
      exec = std::max(exec, length.deviation * length.deviation / length.fastest);
    }
  }
  const double seconds = problem.devices * problem.horizon;
  return std::sqrt(seconds *
                   (exec * std::pow(dual.exec().curve.highest(), 2) + load * std::pow(dual.load().curve.highest(), 2)));
}

double window_width(const BoundProblem& problem, const ClairvoyantBoundOptions& options) {
  double width = options.window.to_seconds();
  if (width == 0) width = problem.slo_min / 3;
  double longest_deviation = 0;
  for (const BoundKind& kind : problem.kinds) {
    longest_deviation = std::max(longest_deviation, kind.load.deviation);
    for (const ActionLength& length : kind.exec) longest_deviation = std::max(longest_deviation, length.deviation);
  }
  return std::max({width, kWindowMin, problem.horizon / kWindowsMax, 2 * kFastestDeviations * longest_deviation});
}

ClairvoyantBound minimise(const BoundProblem& problem, const ClairvoyantBoundOptions& options,
                          const BoundProgress& progress) {
  const double coarse = window_width(problem, options) * (1U << kRefinements);
  ClairvoyantDual dual(problem, coarse, static_cast<size_t>(problem.horizon / coarse) + 1);
  double best = std::numeric_limits<double>::infinity();
  auto best_prices = dual.prices();
  const uint32_t stage = std::max(options.steps / (kRefinements + 2), 1U);
  for (uint32_t i = 0, refined = 0; i < options.steps; ++i) {
    if (i > 0 && i % stage == 0 && refined < kRefinements) {
      dual.refine();
      best = std::numeric_limits<double>::infinity();
      ++refined;
    }
    const double value = dual.evaluate(false) + kAllowedDeviations * cost_deviation(problem, dual);
    if (value < best) {
      best = value;
      best_prices = dual.prices();
    }
    dual.step(kFirstStep * std::pow(kLastStep / kFirstStep, static_cast<double>(i) / options.steps));
    if (progress) progress(static_cast<double>(i + 1) / (options.steps + 4));
  }
  dual.set_prices(std::move(best_prices));
  const double allowance = kAllowedDeviations * cost_deviation(problem, dual);
  const double good = dual.evaluate(true) + allowance;
  const auto with_deadline = static_cast<double>(problem.offered - problem.best_effort);
  return {.offered = problem.offered,
          .good = problem.best_effort + static_cast<uint64_t>(std::min(good + 1e-6, with_deadline)),
          .allowance = allowance,
          .exec_price = dual.exec().worth(),
          .load_price = dual.load().worth(),
          .memory_price = dual.memory().worth()};
}

}  // namespace

Result<ClairvoyantBound> clairvoyant_bound(const SimulationOptions& options, const Workload& workload,
                                           const ProfileTable& profiles, const ClairvoyantBoundOptions& bound,
                                           const BoundProgress& progress) {
  FOLIOT_ASSIGN_OR_RETURN(const BoundProblem problem, make_problem(options, workload, profiles));
  ClairvoyantBound result{.offered = problem.offered, .good = problem.best_effort};
  if (!problem.models.empty()) result = minimise(problem, bound, progress);
  result.measured = options.duration - options.warm_up;
  return result;
}

}  // namespace foliot
