#include "app/commands/experiment_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "app/commands/exit_code.h"
#include "app/commands/flags.h"
#include "app/commands/progress_bar.h"
#include "control/policies/registry.h"
#include "virtual/experiments/experiment.h"

namespace foliot {
namespace {

constexpr const char* kExperimentDescription =
    "Compare policies in virtual time, in the settings of the Clockwork paper and in others\n\n"
    "Writes DIR/NAME.json and a CSV file per table, and prints a line per figure: what the paper has,\n"
    "the goal, and the result. Equal seeds give equal results. Where a goal is a number, the line says whether\n"
    "it is met; the exit code is 4 if one is missed.";

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

// Whether no goal was missed.
Result<bool> run(const ExperimentFlags& flags) {
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
  bool is_met = true;
  for (const Finding& finding : experiment_run.findings()) {
    const char* const verdict = !finding.met ? "" : *finding.met ? " (met)" : " (missed)";
    fmt::print("{}: {}: paper {} / goal {}{} / here {}\n", experiment->name, finding.what, finding.paper, finding.goal,
               verdict, finding.here);
    is_met = is_met && finding.met.value_or(true);
  }
  FOLIOT_RETURN_IF_ERROR(experiment_run.write(flags.output));
  return is_met;
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
  add_seed_flag(command, flags->seed, "Of arrivals, links, noise, traces and predictors");
  command.add_flag("--quick", flags->quick, "Fewer and shorter simulations: seconds instead of minutes");
  add_duration_flag(command, "duration", flags->duration, "Simulated time of each simulation", "the experiment's own");
  command.callback([flags, &exit_code] {
    const Result<bool> is_met = run(*flags);
    if (!is_met.ok()) fmt::print(stderr, "foliot experiment: {}\n", is_met.status().message());
    exit_code = !is_met.ok() ? kExitFailed : *is_met ? 0 : kExitGoalMissed;
  });
}

}  // namespace foliot
