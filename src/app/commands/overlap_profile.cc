#include "app/commands/overlap_profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/commands/confined_compile_command.h"
#include "app/commands/flags.h"
#include "app/commands/help_formatter.h"
#include "app/commands/part_flags.h"
#include "app/commands/progress_bar.h"
#include "app/commands/stop_signals.h"
#include "engine/device/cpu/cpu_device.h"
#include "foundation/base/units.h"
#include "foundation/config/repository_path.h"
#include "foundation/store/disk_storage.h"
#include "models/repository/compile_process.h"
#include "models/repository/model_folder.h"
#include "models/repository/package_store.h"
#include "node/devices/group_runner.h"
#include "planning/profiling/overlap_training.h"
#include "planning/profiling/predictor_file.h"
#include "planning/profiling/sample_file.h"
#include "planning/profiling/sampling_plan.h"

namespace foliot {
namespace {

// After so many groups of each pair it is looked whether more make the predictor better.
constexpr uint32_t kRound = 200;
// Not many samples are lost if the machine stops.
constexpr uint32_t kSyncInterval = 20;

class OverlapProfiler {
 public:
  explicit OverlapProfiler(const OverlapProfileFlags& flags)
      : flags_(flags), cache_(cache_folder(flags.repository, flags.cache)), random_(flags.seed) {}

  Status run() {
    FOLIOT_RETURN_IF_ERROR(choose_device());
    FOLIOT_RETURN_IF_ERROR(compile_models());
    FOLIOT_ASSIGN_OR_RETURN(storage_, DiskStorage::open(cache_ / kOverlapFolder));
    FOLIOT_ASSIGN_OR_RETURN(runner_, GroupRunner::create(place_, models_));
    FOLIOT_RETURN_IF_ERROR(open_samples());
    FOLIOT_RETURN_IF_ERROR(profile_models());
    FOLIOT_RETURN_IF_ERROR(measure_groups());
    return write_and_report();
  }

 private:
  Status choose_device();
  Status compile_models();
  Status open_samples();
  Status profile_models();
  Status measure_groups();
  Status write_and_report();
  struct PairReport {
    std::string first, second;
    size_t groups = 0;
    double error = 0;  // held out
    double spread = 0;
    double gain = 0;
  };
  Result<PairReport> report(size_t pair, const LearnedOverlap& learned);
  Status write_json(const std::vector<PairReport>& reports, const OverlapErrors& errors) const;
  Result<double> gain_of_whole(uint32_t first, uint32_t second);
  LearnedOverlap learn(bool compare);
  Status interrupted() {
    return Status::unavailable(fmt::format("interrupted with {} groups measured; the same command goes on from there",
                                           samples_->samples().size()));
  }

  const OverlapProfileFlags& flags_;
  const std::filesystem::path cache_;
  Random random_;
  StopSignals signals_;
  ProgressBar bar_{"profiling"};
  DevicePlace place_;
  std::vector<CompiledModel> models_;
  std::unique_ptr<DiskStorage> storage_;
  std::unique_ptr<GroupRunner> runner_;
  std::optional<SampleFile> samples_;
  std::optional<SamplingPlan> plan_;
  std::vector<ProfiledModel> profiles_;
};

Status OverlapProfiler::choose_device() {
  FOLIOT_ASSIGN_OR_RETURN(const DevicePlaces places, device_places(flags_.devices));
  place_ = places.front();
  if (place_.lanes >= 2) return Status();
  return Status::invalid_argument("a device of one lane runs nothing beside others; choose --lanes as the server will");
}

Status OverlapProfiler::compile_models() {
  std::map<std::string, ModelFolder> folders;
  for (const std::string& pattern : flags_.models) {
    FOLIOT_ASSIGN_OR_RETURN(const std::vector<ModelFolder> found,
                            scan_repository(flags_.repository, ModelConfig(), {pattern}, cache_));
    if (found.empty()) {
      return Status::not_found(
          fmt::format("--overlap '{}': there is no such model in {}", pattern, flags_.repository.string()));
    }
    for (const ModelFolder& folder : found) folders[folder.name] = folder;
  }
  CompileProcess compiler(confined_compile_command(), {});
  const auto device = make_cpu_device({.threads = place_.threads});
  PackageStore packages(cache_, WeightsTier::kMemory, device->kind() + " " + device->fingerprint(),
                        [&](const auto& model, const auto& options, int output, const CompileWatch& watch) {
                          return compiler.compile({.model = model, .options = options, .threads = place_.threads},
                                                  output, watch);
                        });
  FOLIOT_RETURN_IF_ERROR(packages.check_writable());
  for (const auto& entry : folders) {
    const ModelFolder& folder = entry.second;
    FOLIOT_RETURN_IF_ERROR(folder.status);
    if (folder.is_container()) {
      return Status::invalid_argument(
          fmt::format("model '{}' is a container, which has no operators; leave it out", folder.name));
    }
    const CompileWatch watch{
        .progress = [&](std::string_view step, double share) { bar_.show(folder.name, step, share); },
        .cancelled = [&] { return signals_.arrived(); }};
    FOLIOT_ASSIGN_OR_RETURN(Package package, packages.get(folder.model, folder.config.compile, watch));
    models_.push_back({folder, std::move(package)});
  }
  if (models_.size() >= 2 && models_.size() <= OverlapPredictor::kModelsMax) return Status();
  return Status::invalid_argument(fmt::format("--overlap names {} of the models in {}; name 2 to {}", models_.size(),
                                              flags_.repository.string(), OverlapPredictor::kModelsMax));
}

// Of another model, device or seed no sample can be used.
Status OverlapProfiler::open_samples() {
  std::string setting =
      fmt::format("{} lanes, {}, seed {}, {} repeats", place_.lanes, to_string(place_), flags_.seed, flags_.repeats);
  std::vector<SamplingPlan::Model> shapes;
  for (uint32_t i = 0; i < models_.size(); ++i) {
    const ModelInfo& info = runner_->model(i);
    setting += fmt::format("\n{} {} {}", info.name, info.content, models_[i].package.program->content_hash);
    shapes.push_back({runner_->operators(i), static_cast<uint32_t>(info.buckets.size())});
  }
  plan_.emplace(std::move(shapes), flags_.seed);
  FOLIOT_ASSIGN_OR_RETURN(samples_, SampleFile::open(*storage_, setting));
  if (samples_->found() == 0) return Status();
  bar_.clear();
  fmt::print("going on after {} groups that were measured before\n", samples_->found());
  return Status();
}

Status OverlapProfiler::profile_models() {
  for (uint32_t i = 0; i < models_.size(); ++i) {
    if (signals_.arrived()) return interrupted();
    bar_.show(models_[i].folder.name, "alone", static_cast<double>(i) / static_cast<double>(models_.size()));
    FOLIOT_ASSIGN_OR_RETURN(ProfiledModel profile, runner_->profile(i, flags_.repeats));
    profiles_.push_back(std::move(profile));
  }
  return Status();
}

LearnedOverlap OverlapProfiler::learn(bool compare) {
  return learn_overlap(profiles_, runner_->lane_count(), samples_->samples(), {.compare = compare}, random_);
}

Status OverlapProfiler::measure_groups() {
  const size_t pairs = plan_->pairs().size();
  const size_t most = std::min<size_t>(pairs * flags_.samples, kSamplesMax);
  FallingError error;
  std::string shown = "pairs";
  while (samples_->samples().size() < most) {
    const size_t number = samples_->samples().size();
    if (signals_.arrived()) {
      FOLIOT_RETURN_IF_ERROR(samples_->sync());
      return interrupted();
    }
    bar_.show(shown, fmt::format("group {} of at most {}", number + 1, most),
              static_cast<double>(number) / static_cast<double>(most));
    FOLIOT_ASSIGN_OR_RETURN(OverlapSample sample, runner_->measure(plan_->group(number), flags_.repeats));
    FOLIOT_RETURN_IF_ERROR(samples_->add(std::move(sample)));
    if ((number + 1) % kSyncInterval == 0) FOLIOT_RETURN_IF_ERROR(samples_->sync());
    if ((number + 1) % (kRound * pairs) != 0) continue;
    const double now = learn(false).errors.correction;
    shown = fmt::format("pairs, held-out error {:.1f} %", 100 * now);
    if (!error.still_falls(now)) break;
  }
  return samples_->sync();
}

// Both whole in the first bucket, in turn on all lanes against together.
Result<double> OverlapProfiler::gain_of_whole(uint32_t first, uint32_t second) {
  const std::vector<OverlapPredictor::Part> both{{first, 0, {}}, {second, 0, {}}};
  FOLIOT_ASSIGN_OR_RETURN(const OverlapSample sample, runner_->measure(both, std::max(flags_.repeats, 5u)));
  return gain_of(profiles_, sample);
}

Result<OverlapProfiler::PairReport> OverlapProfiler::report(size_t pair, const LearnedOverlap& learned) {
  const auto [first, second] = plan_->pairs()[pair];
  PairReport report{.first = models_[first].folder.name, .second = models_[second].folder.name};
  size_t held_out = 0;
  for (size_t i = pair; i < samples_->samples().size(); i += plan_->pairs().size()) {
    const OverlapSample& sample = samples_->samples()[i];
    ++report.groups;
    report.spread += sample.spread;
    if (!std::ranges::binary_search(learned.held_out, i)) continue;
    const Duration predicted = learned.predictor.predict(std::span<const OverlapPredictor::Part>(sample.parts));
    report.error += std::abs(predicted.to_seconds() / sample.together.to_seconds() - 1);
    ++held_out;
  }
  report.error /= static_cast<double>(std::max<size_t>(held_out, 1));
  report.spread /= static_cast<double>(std::max<size_t>(report.groups, 1));
  FOLIOT_ASSIGN_OR_RETURN(report.gain, gain_of_whole(first, second));
  return report;
}

Status OverlapProfiler::write_json(const std::vector<PairReport>& reports, const OverlapErrors& errors) const {
  std::string pairs;
  for (const PairReport& each : reports) {
    pairs += fmt::format(R"({}{{"models": ["{}", "{}"], "groups": {}, "error": {}, "spread": {}, "gain": {}}})",
                         pairs.empty() ? "" : ", ", each.first, each.second, each.groups, each.error, each.spread,
                         each.gain);
  }
  std::ofstream file(flags_.report_json);
  file
      << fmt::format(
             R"({{"lanes": {}, "pairs": [{}], "held_out_error": {{"correction": {}, "abacus": {}, "longest_alone": {}}}}})",
             place_.lanes, pairs, errors.correction, errors.abacus, errors.untrained)
      << std::endl;
  return file ? Status() : Status::internal(fmt::format("cannot write {}", flags_.report_json.string()));
}

Status OverlapProfiler::write_and_report() {
  if (samples_->samples().size() < 10) return Status::invalid_argument("fewer than 10 groups; raise --samples");
  const LearnedOverlap learned = learn(true);
  std::vector<PairReport> reports;
  double spread = 0;
  for (size_t pair = 0; pair < plan_->pairs().size(); ++pair) {
    FOLIOT_ASSIGN_OR_RETURN(PairReport own, report(pair, learned));
    spread += own.spread / static_cast<double>(plan_->pairs().size());
    reports.push_back(std::move(own));
  }
  bar_.clear();
  fmt::print("{:<40} {:>8} {:>8} {:>8} {:>6}\n", "pair", "groups", "error", "spread", "gain");
  for (const PairReport& each : reports) {
    fmt::print("{:<40} {:>8} {:>6.1f} % {:>6.1f} % {:>6.2f}\n", each.first + " + " + each.second, each.groups,
               100 * each.error, 100 * each.spread, each.gain);
  }
  fmt::print("held out, all: {:.1f} %; with Abacus' features {:.1f} %; by the longest segment alone {:.1f} %\n",
             100 * learned.errors.correction, 100 * learned.errors.abacus, 100 * learned.errors.untrained);
  if (!flags_.report_json.empty()) FOLIOT_RETURN_IF_ERROR(write_json(reports, learned.errors));
  const std::filesystem::path folder = cache_ / kOverlapFolder;
  if (const Status fit = check_quality(spread, learned.errors, flags_.error_max); !fit.ok()) {
    return Status::unavailable(
        fmt::format("no predictor was kept: {}. The same command goes on from the groups in {}; remove that folder to "
                    "measure all again, or take what there is with a larger --error-max",
                    fit.message(), folder.string()));
  }
  FOLIOT_RETURN_IF_ERROR(write_predictor(*storage_, learned.predictor));
  fmt::print("{} is what `foliot serve --scheduler overlap --lanes {}` uses\n", (folder / kPredictorFileName).string(),
             place_.lanes);
  return Status();
}

}  // namespace

CLI::Option* add_overlap_profile_flags(CLI::App& app, OverlapProfileFlags& flags) {
  const FlagGroup group(app, "Models beside each other");
  CLI::Option* const overlap = app.add_option("--overlap", flags.models,
                                              "Measure these models of a repository beside each other, for the "
                                              "scheduler overlap: names, or patterns like 'resnet*'");
  overlap->delimiter(',')->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_lane_flags(app, flags.devices);
  app.add_option("--samples", flags.samples, "Groups of each pair at most; fewer where more do not help")
      ->capture_default_str()
      ->check(CLI::Range(10, 100'000));
  app.add_option("--repeats", flags.repeats, "Runs of each group, of which the median counts")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  add_seed_flag(app, flags.seed, "Of the groups that are drawn");
  app.add_option("--error-max", flags.error_max,
                 "Keep no predictor whose error on held-out groups, or spread of repeats, is above this share")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--report-json", flags.report_json, "Write what is printed to this file");
  for (const char* own : {"--devices", "--lanes", "--samples", "--repeats", "--seed", "--error-max", "--report-json"}) {
    app.get_option(own)->needs(overlap);
  }
  return overlap;
}

Status profile_overlap(const OverlapProfileFlags& flags) { return OverlapProfiler(flags).run(); }

}  // namespace foliot
