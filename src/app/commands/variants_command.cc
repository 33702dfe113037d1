#include "app/commands/variants_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "answer/tasks/task_file.h"
#include "app/commands/json_line.h"
#include "control/controller/task_options.h"
#include "control/variants/pareto_plot.h"
#include "control/variants/variant.h"
#include "engine/device/cpu/cpu_device.h"
#include "foundation/base/units.h"
#include "foundation/config/price_file.h"
#include "foundation/config/repository_path.h"
#include "foundation/platform/processor.h"
#include "models/repository/model_folder.h"
#include "models/repository/package_store.h"

namespace foliot {
namespace {

struct VariantsFlags {
  std::filesystem::path repository;
  std::string task;
  std::filesystem::path cache;
  std::filesystem::path prices;
  std::filesystem::path plot;
  std::optional<uint32_t> threads;
  bool json = false;
};

// One variant, as the compiler measured it on this machine.
struct KnownVariant {
  VariantSpec spec;
  std::string trouble;  // not empty: nothing else is known
  std::vector<BatchLatency> latencies{};
  Duration load{};
  uint64_t memory_bytes = 0;
  double dollars_per_million = 0;
};

// What was compiled of the model for some number of threads, the most likely first.
Result<std::optional<Package>> find_package(const ModelFolder& model, const VariantsFlags& flags) {
  const uint32_t most = usable_processors();
  std::vector<uint32_t> threads{std::max(1u, most - 1), most};  // as `foliot serve` has by default
  for (uint32_t i = 1; i < most; ++i) threads.push_back(i);
  if (flags.threads) threads = {*flags.threads};
  for (const uint32_t count : threads) {
    const auto device = make_cpu_device({.threads = count});
    PackageStore packages(cache_folder(flags.repository, flags.cache), WeightsTier::kDisk,
                          device->kind() + " " + device->fingerprint(), {});
    FOLIOT_ASSIGN_OR_RETURN(std::optional<Package> found, packages.find(model.model, model.config.compile));
    if (found) return found;
  }
  return std::optional<Package>();
}

KnownVariant know(const VariantSpec& spec, const std::vector<ModelFolder>& models, const VariantsFlags& flags,
                  std::optional<Duration> slo, double hourly_dollars) {
  const auto model = std::ranges::find(models, spec.model, &ModelFolder::name);
  if (model == models.end()) return {spec, "is not in the repository"};
  if (!model->status.ok()) return {spec, std::string(model->status.message())};
  if (model->is_container()) return {spec, "is a container, which is measured when it is served"};
  const Result<std::optional<Package>> found = find_package(*model, flags);
  if (!found.ok()) return {spec, std::string(found.status().message())};
  if (!*found) return {spec, "is not compiled: serve it once, or give --threads"};
  const Program& program = *(**found).program;
  KnownVariant known{spec, ""};
  const std::vector<Duration>& execs = program.buckets.front().seed_exec;
  for (size_t i = 0; i < program.batch_sizes.size() && i < execs.size(); ++i) {
    known.latencies.push_back({program.batch_sizes[i], std::max(execs[i], Duration::nanoseconds(1))});
  }
  known.load = program.seed_load;
  known.memory_bytes = program.weights_bytes + program.workspace_bytes();
  const double rate = saturation_within(known.latencies, slo.value_or(Duration::max()));
  known.dollars_per_million = hourly_dollars / 3600 / rate * 1e6;
  return known;
}

void print_variants(const std::vector<KnownVariant>& variants, const std::vector<bool>& front) {
  size_t width = 7;
  for (const KnownVariant& variant : variants) width = std::max(width, variant.spec.model.size());
  fmt::print("{:{}}  {:>8}  {:>9}  {:>9}  {:>12}  {:>5}  {}\n", "VARIANT", width, "ACCURACY", "LOAD", "MEMORY",
             "$ PER 10^6", "FRONT", "LATENCY BY BATCH SIZE");
  size_t next = 0;
  for (const KnownVariant& variant : variants) {
    if (!variant.trouble.empty()) {
      fmt::print("{:{}}  {:>8.4f}  {}\n", variant.spec.model, width, variant.spec.accuracy, variant.trouble);
      continue;
    }
    std::vector<std::string> latencies;
    for (const BatchLatency& each : variant.latencies) {
      latencies.push_back(fmt::format("{}: {:.3g} ms", each.batch, each.latency.to_milliseconds()));
    }
    fmt::print("{:{}}  {:>8.4f}  {:>6.3g} ms  {:>9}  {:>12.3g}  {:>5}  {}\n", variant.spec.model, width,
               variant.spec.accuracy, variant.load.to_milliseconds(), format_bytes(variant.memory_bytes),
               variant.dollars_per_million, front[next++] ? "yes" : "no", fmt::join(latencies, ", "));
  }
}

void print_variant_objects(const std::vector<KnownVariant>& variants, const std::vector<bool>& front) {
  size_t next = 0;
  for (const KnownVariant& variant : variants) {
    nlohmann::ordered_json object{{"variant", variant.spec.model}, {"accuracy", variant.spec.accuracy}};
    if (variant.trouble.empty()) {
      object["load_ms"] = variant.load.to_milliseconds();
      object["memory_bytes"] = variant.memory_bytes;
      object["dollars_per_million"] = variant.dollars_per_million;
      object["front"] = bool{front[next++]};
      for (const BatchLatency& each : variant.latencies) {
        object["latency_ms"][fmt::format("{}", each.batch)] = each.latency.to_milliseconds();
      }
    } else {
      object["reason"] = variant.trouble;
    }
    print_json_line(object);
  }
}

Result<int> list_variants(const VariantsFlags& flags) {
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<TaskSpec> tasks, scan_tasks(flags.repository));
  const auto task = std::ranges::find(tasks, flags.task, &TaskSpec::name);
  if (task == tasks.end()) {
    std::vector<std::string> names;
    for (const TaskSpec& each : tasks) names.push_back(each.name);
    return Status::not_found(fmt::format("{} has no task '{}'; its tasks: {}", flags.repository.string(), flags.task,
                                         names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
  }
  FOLIOT_RETURN_IF_ERROR(task->status);
  FOLIOT_ASSIGN_OR_RETURN(const auto models, scan_repository(flags.repository, ModelConfig(), {}, flags.cache));
  TaskOptions prices;
  if (!flags.prices.empty()) {
    FOLIOT_ASSIGN_OR_RETURN(prices.hourly_dollars, read_price_file(flags.prices));
  }
  std::vector<KnownVariant> known;
  std::vector<ParetoPoint> points;
  for (const VariantSpec& spec : task->variants) {
    known.push_back(know(spec, models, flags, task->default_slo, prices.hourly_dollars_of(std::string(kDefaultKind))));
    if (known.back().trouble.empty()) {
      points.push_back({spec.model, known.back().dollars_per_million, spec.accuracy});
    }
  }
  (flags.json ? print_variant_objects : print_variants)(known, pareto_front(points));
  if (points.empty()) return 1;
  if (flags.plot.empty()) return 0;
  std::ofstream file(flags.plot, std::ios::binary);
  file << pareto_svg(points, fmt::format("Variants of task '{}'", task->name), "dollars for a million rows");
  file.close();
  if (!file) return Status::internal(fmt::format("{}: cannot be written", flags.plot.string()));
  return 0;
}

}  // namespace

void add_variants_command(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("variants", "List what is known of the variants of a task, and draw which are worth having");
  command->footer(
      "Latencies, LOAD and memory are those that the compiler measured when the variants were last served from this\n"
      "repository on this machine. Memory is weights and one workspace. A variant is on the front if no other is at\n"
      "least as accurate and as cheap. Costs are of full batches within the task's default SLO.\n\n"
      "  foliot variants models digits --prices prices.toml --plot digits.svg");
  auto flags = std::make_shared<VariantsFlags>();
  command->add_option("repository", flags->repository, "folder with a folder per model")->required();
  command->add_option("task", flags->task, "the task's name")->required();
  command->add_option("--cache", flags->cache, "folder of compiled models")->default_str("REPOSITORY/.foliot");
  command
      ->add_option("--prices", flags->prices, "dollars per hour of a device, by kind: a TOML file, such as cpu = 0.17")
      ->type_name("FILE")
      ->default_str("1 for each kind");
  command->add_option("--threads", flags->threads, "that the models were compiled for")->default_str("any number");
  command->add_option("--plot", flags->plot, "draw accuracy over cost into this file")->type_name("FILE.svg");
  command->add_flag("--json", flags->json, "print an object in each line, without a header");
  command->callback([flags, &exit_code] {
    const Result<int> result = list_variants(*flags);
    if (!result.ok()) fmt::print(stderr, "foliot variants: {}\n", result.status().message());
    exit_code = result.ok() ? *result : 1;
  });
}

}  // namespace foliot
