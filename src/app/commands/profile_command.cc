#include "app/commands/profile_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "answer/pipelines/pipeline_file.h"
#include "answer/pipelines/resolve.h"
#include "app/commands/confined_compile_command.h"
#include "app/commands/overlap_profile.h"
#include "app/commands/part_flags.h"
#include "app/commands/progress_bar.h"
#include "app/commands/sampled_profile.h"
#include "app/commands/stage_runner.h"
#include "edge/jobs/npz_file.h"
#include "engine/device/cpu/cpu_device.h"
#include "foundation/config/repository_path.h"
#include "foundation/platform/memory.h"
#include "models/repository/compile_process.h"
#include "models/repository/model_folder.h"
#include "models/repository/package_store.h"
#include "planning/pipelines/profile_file.h"

namespace foliot {
namespace {

constexpr const char* kProfileDescription =
    "Measure the stages of a pipeline on this machine, for foliot plan, or models beside each other\n\n"
    "Compiles the model of each stage for several batch sizes, and measures each of them. With --overlap, runs parts "
    "of\n"
    "pairs of models at once on the lanes of a device, and makes the predictor that the scheduler overlap uses.";

constexpr const char* kProfileFooter =
    R"(The pipeline lies in its repository, as `foliot serve` has it: REPOSITORY/NAME/pipeline.toml.

  foliot profile models/animals/pipeline.toml --output profiles.toml
  foliot profile models/animals/pipeline.toml --threads 4 --kind cpu:4 --output wide.toml

The inputs are made up. With sample calls, as numpy.savez() writes them, an array for each input of the pipeline with a
call a row, it measures what the stages take on these, by P50 and P99, and the share of the calls that visit each; so does
the log of a server: foliot plan --from-log. A container is started as by a server. What is compiled stays in the cache.
A plan may have larger batches than model.toml declares: declare them, or give --batch-sizes.

  foliot profile models/animals/pipeline.toml --calls calls.npz --output profiles.toml

With --overlap it takes a repository, and writes the predictor beside the compiled models. Choose the devices as for the
server, and run nothing else meanwhile. Ctrl-C keeps what was measured: the same command goes on from there.

  foliot profile models --overlap mobilenetv2,minilm --lanes 2
  foliot serve models --scheduler overlap --lanes 2

Of each pair it prints the error on held-out groups, the spread of repeats, and the gain: how many times as long both
take in turn on all lanes as together. Pairs that gain less than 1.05 do not run together.)";

// Of each plan: more than a seed profile has.
constexpr uint32_t kRuns = 20;

struct ProfileFlags {
  std::filesystem::path pipeline;
  std::filesystem::path cache;
  std::filesystem::path output;
  std::filesystem::path calls;  // sample calls; empty: inputs are made up
  std::vector<uint32_t> batch_sizes{1, 2, 4, 8, 16, 32, 64};
  std::string kind = "cpu";
  uint32_t threads = default_threads();
  OverlapProfileFlags overlap;
};

class PipelineProfiler {
 public:
  PipelineProfiler(const ProfileFlags& flags, std::filesystem::path repository)
      : flags_(flags),
        repository_(std::move(repository)),
        compiler_(confined_compile_command(), {.memory_bytes = total_memory_bytes()}),
        packages_(cache_folder(repository_, flags.cache), WeightsTier::kDisk, device_of(flags),
                  [this](const auto& model, const CompileOptions& options, int output, const CompileWatch& watch) {
                    return compiler_.compile({.model = model, .options = options, .threads = flags_.threads}, output,
                                             watch);
                  }) {}

  Result<StageProfiles> profile(const PipelineSpec& spec) {
    FOLIOT_ASSIGN_OR_RETURN(const std::vector<ModelFolder> folders,
                            scan_repository(repository_, ModelConfig(), {}, flags_.cache));
    FOLIOT_RETURN_IF_ERROR(packages_.check_writable());
    if (!flags_.calls.empty()) return profile_samples(spec, folders);
    StageProfiles profiles;
    for (const StageSpec& stage : spec.stages) {
      Result<const ModelFolder*> folder = find(folders, stage);
      Status status = folder.ok() ? add(stage, **folder, profiles) : folder.status();
      if (!status.ok()) return at(spec, stage, status);
    }
    return profiles;
  }

 private:
  static std::string device_of(const ProfileFlags& flags) {
    const auto device = make_cpu_device({.threads = flags.threads});
    return device->kind() + " " + device->fingerprint();
  }

  static Status at(const PipelineSpec& spec, const StageSpec& stage, const Status& status) {
    return status.with_context(fmt::format("{}:{}: stage '{}'", spec.file, stage.line, stage.name));
  }

  Result<const ModelFolder*> find(const std::vector<ModelFolder>& folders, const StageSpec& stage) const {
    const auto folder = std::ranges::find(folders, stage.model, &ModelFolder::name);
    if (folder == folders.end()) {
      return Status::not_found(fmt::format("there is no model '{}' in '{}'", stage.model, repository_.string()));
    }
    FOLIOT_RETURN_IF_ERROR(folder->status);
    return &*folder;
  }

  Result<Package> compiled(const StageSpec& stage, const ModelFolder& folder) {
    CompileOptions options = folder.config.compile;
    options.batch_sizes = flags_.batch_sizes;
    options.profile_runs = kRuns;
    auto package = packages_.get(folder.model, options, {.progress = [&](std::string_view step, double share) {
                                   bar_.show(stage.name, std::string(step), share);
                                 }});
    bar_.clear();
    return package;
  }

  // The stages' models are there, each once; the pipeline is run as a server would.
  Result<StageProfiles> profile_samples(const PipelineSpec& spec, const std::vector<ModelFolder>& folders) {
    FOLIOT_ASSIGN_OR_RETURN(const auto calls, read_npz(flags_.calls));
    std::map<std::string, std::unique_ptr<StageRunner>> runners;
    ModelsByName models;
    std::vector<StageRunner*> of_stages;
    for (const StageSpec& stage : spec.stages) {
      std::unique_ptr<StageRunner>& runner = runners[stage.model];
      if (runner == nullptr) {
        auto opened = open(stage, folders);
        if (!opened.ok()) return at(spec, stage, opened.status());
        runner = std::move(*opened);
        models[stage.model] = runner->model();
      }
      of_stages.push_back(runner.get());
    }
    FOLIOT_ASSIGN_OR_RETURN(const auto served, resolve(spec, models, PipelineId(1)));
    auto profiles = SampledProfile(*served, std::move(of_stages), bar_).measure(calls, flags_.calls.string());
    bar_.clear();
    return profiles;
  }

  Result<std::unique_ptr<StageRunner>> open(const StageSpec& stage, const std::vector<ModelFolder>& folders) {
    FOLIOT_ASSIGN_OR_RETURN(const ModelFolder* folder, find(folders, stage));
    if (folder->is_container()) return run_container_stage(*folder, flags_.batch_sizes);
    FOLIOT_ASSIGN_OR_RETURN(Package package, compiled(stage, *folder));
    return run_compiled_stage(*folder, std::move(package), flags_.threads, flags_.kind);
  }

  Status add(const StageSpec& stage, const ModelFolder& folder, StageProfiles& to) {
    if (folder.is_container()) return add_container(stage, folder, to);
    FOLIOT_ASSIGN_OR_RETURN(const Package package, compiled(stage, folder));
    const Program& program = *package.program;
    KindProfile kind{flags_.kind, program.batch_sizes, {{1, {}}}};
    // Of several buckets the longest counts.
    std::vector<Duration>& durations = kind.quantiles.front().of_batches;
    durations.resize(program.batch_sizes.size());
    for (const ProgramBucket& bucket : program.buckets) {
      for (size_t i = 0; i < durations.size(); ++i) durations[i] = std::max(durations[i], bucket.seed_exec[i]);
    }
    kind.raise_to_smaller();
    FOLIOT_RETURN_IF_ERROR(kind.check());
    to.emplace(stage.name, StageProfile{stage.name, 1, {std::move(kind)}});
    return Status();
  }

  // On zeros. A container of several stages is measured once for each.
  Status add_container(const StageSpec& stage, const ModelFolder& folder, StageProfiles& to) const {
    FOLIOT_ASSIGN_OR_RETURN(const std::unique_ptr<StageRunner> runner, run_container_stage(folder, flags_.batch_sizes));
    const Runnable& runnable = runner->model()->only();
    KindProfile kind{runnable.kind, runnable.batch_sizes, {{1, runnable.seed_exec.front()}}};
    FOLIOT_RETURN_IF_ERROR(kind.check());
    to.emplace(stage.name, StageProfile{stage.name, 1, {std::move(kind)}});
    return Status();
  }

  const ProfileFlags& flags_;
  const std::filesystem::path repository_;
  CompileProcess compiler_;
  PackageStore packages_;
  ProgressBar bar_{"measuring"};
};

Status run_profile(const ProfileFlags& flags) {
  const std::filesystem::path folder = std::filesystem::absolute(flags.pipeline).parent_path();
  const PipelineSpec spec = read_pipeline(folder.filename().string(), flags.pipeline);
  FOLIOT_RETURN_IF_ERROR(spec.status);
  FOLIOT_ASSIGN_OR_RETURN(const StageProfiles profiles, PipelineProfiler(flags, folder.parent_path()).profile(spec));
  const std::string text = profile_file_text(profiles);
  if (flags.output.empty()) {
    fmt::print("{}", text);
    return Status();
  }
  std::ofstream file(flags.output);
  file << text << std::flush;
  return file ? Status() : Status::invalid_argument(fmt::format("--output: cannot write '{}'", flags.output.string()));
}

}  // namespace

void add_profile_command(CLI::App& app, int& exit_code) {
  const auto flags = std::make_shared<ProfileFlags>();
  CLI::App& command = *app.add_subcommand("profile", kProfileDescription);
  command.footer(kProfileFooter);
  command.add_option("pipeline", flags->pipeline, "A pipeline.toml; with --overlap the folder of a repository")
      ->required()
      ->type_name("FILE");
  command.add_option("--batch-sizes", flags->batch_sizes, "Rows of a batch; from 1 to 64, ascending")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->check(CLI::Range(1u, kPlannedBatchMax))
      ->capture_default_str();
  CLI::Option* const threads =
      command.add_option("--threads", flags->threads, "Of one device, as `foliot serve` has it");
  threads->check(CLI::Range(1u, 1024u))->capture_default_str();
  command.add_option("--kind", flags->kind, "What the file calls this kind of device")->capture_default_str();
  command.add_option("--cache", flags->cache, "Where compiled models are kept")
      ->type_name("DIR")
      ->default_str("REPOSITORY/.foliot");
  command.add_option("--output", flags->output, "Write the profiles into this file [standard output]")
      ->type_name("FILE");
  command
      .add_option("--calls", flags->calls,
                  "Sample calls, an .npz with an array for each input of the pipeline and a call a row, in place of "
                  "inputs that are made up")
      ->type_name("FILE");
  CLI::Option* const overlap = add_overlap_profile_flags(command, flags->overlap);
  for (const char* of_stages : {"--batch-sizes", "--kind", "--output", "--calls"})
    overlap->excludes(command.get_option(of_stages));
  command.callback([flags, threads, &exit_code] {
    if (!flags->overlap.models.empty()) {
      flags->overlap.repository = flags->pipeline;
      flags->overlap.cache = flags->cache;
      if (threads->count() > 0) flags->overlap.devices.threads = flags->threads;
      const Status measured = profile_overlap(flags->overlap);
      if (!measured.ok()) fmt::print(stderr, "foliot profile: {}\n", measured.message());
      exit_code = measured.ok() ? 0 : 1;
      return;
    }
    std::vector<uint32_t>& sizes = flags->batch_sizes;
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    Status status = sizes.front() == 1 ? Status() : Status::invalid_argument("--batch-sizes: must contain 1");
    if (status.ok()) status = run_profile(*flags);
    if (!status.ok()) fmt::print(stderr, "foliot profile: {}\n", status.message());
    exit_code = status.ok() ? 0 : 1;
  });
}

}  // namespace foliot
