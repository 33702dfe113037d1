#include "app/commands/experiment_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "app/commands/flags.h"
#include "app/commands/progress_bar.h"
#include "experiments/experiment.h"
#include "policies/registry.h"

namespace foliot {
namespace {

constexpr const char* kExperimentDescription =
    "Compare policies in virtual time, in the settings of the Clockwork paper and in others\n\n"
    "Writes DIR/NAME.json and a CSV file per table, and prints a line per figure: what the paper has,\n"
    "the goal, and the result. Equal seeds give equal results.";

struct ExperimentFlags {
  std::string name;
  std::string output = "out/experiments";
  std::vector<std::string> schedulers;
  uint64_t seed = 1;
  bool quick = false;
  std::optional<Duration> duration;
};

std::string list_of_experiments() {
  std::string text = "Experiments:\n";
  for (const Experiment& experiment : experiments()) {
    text += fmt::format("  {:15} {}\n", experiment.name, experiment.summary);
  }
  return text;
}

std::vector<std::string> names_of_experiments() {
  std::vector<std::string> names;
  for (const Experiment& experiment : experiments()) names.push_back(experiment.name);
  return names;
}

Result<std::vector<RegisteredPolicy>> chosen_policies(const Experiment& experiment,
                                                      const std::vector<std::string>& schedulers) {
  std::vector<std::string> names = schedulers.empty() ? experiment.policies : schedulers;
  if (names.empty()) names = policy_names();
  std::vector<RegisteredPolicy> chosen;
  for (const std::string& name : names) {
    FOLIOT_ASSIGN_OR_RETURN(RegisteredPolicy policy, find_policy(name));
    chosen.push_back(std::move(policy));
  }
  return chosen;
}

Status run(const ExperimentFlags& flags) {
  const auto experiment = std::find_if(experiments().begin(), experiments().end(),
                                       [&](const Experiment& each) { return each.name == flags.name; });
  ExperimentOptions options{.seed = flags.seed, .quick = flags.quick, .duration = flags.duration};
  FOLIOT_ASSIGN_OR_RETURN(options.policies, chosen_policies(*experiment, flags.schedulers));
  std::error_code error;
  std::filesystem::create_directories(flags.output, error);
  if (error) return Status::invalid_argument(fmt::format("--output: {}: {}", flags.output, error.message()));

  ProgressBar bar("simulating");
  options.progress = [&](const std::string& step, double share) { bar.show(experiment->name, step, share); };
  ExperimentRun experiment_run(experiment->name, std::move(options));
  FOLIOT_RETURN_IF_ERROR(experiment->run(experiment_run));
  bar.clear();
  for (const Finding& finding : experiment_run.findings()) {
    fmt::print("{}: {}: paper {} / goal {} / here {}\n", experiment->name, finding.what, finding.paper, finding.goal,
               finding.here);
  }
  return experiment_run.write(flags.output);
}

}  // namespace

void add_experiment_command(CLI::App& app, int& exit_code) {
  const auto flags = std::make_shared<ExperimentFlags>();
  CLI::App& command = *app.add_subcommand("experiment", kExperimentDescription);
  command.footer(list_of_experiments());
  command.add_option("name", flags->name, "Which of the experiments below")
      ->required()
      ->check(CLI::IsMember(names_of_experiments()))
      ->type_name("NAME");
  command.add_option("--output", flags->output, "Where to write the results")->type_name("DIR")->capture_default_str();
  command.add_option("--scheduler", flags->schedulers, "Only this policy; may be repeated [all]")
      ->type_name("NAME")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--seed", flags->seed, "Of arrivals, links and noise")->capture_default_str();
  command.add_flag("--quick", flags->quick, "Fewer and shorter simulations: seconds instead of minutes");
  add_duration_flag(command, "duration", flags->duration, "Simulated time of each simulation", "the experiment's own");
  command.callback([flags, &exit_code] {
    const Status status = run(*flags);
    if (!status.ok()) fmt::print(stderr, "foliot experiment: {}\n", status.message());
    exit_code = status.ok() ? 0 : 1;
  });
}

}  // namespace foliot
