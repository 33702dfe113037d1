#include "app/commands/replay_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "answer/own_policies/replayed_policy.h"
#include "answer/selection/policy_replay.h"
#include "app/commands/container_launch_command.h"
#include "app/commands/flags.h"
#include "app/commands/part_flags.h"
#include "foundation/base/escaped_text.h"
#include "observe/request_log/log.h"

namespace foliot {
namespace {

// Weights that differ from 1 by more than their interval allows mean wrong probabilities.
constexpr double kWeightIntervals = 2;
// The normal approximation needs some calls.
constexpr double kEffectiveCallsMin = 100;

struct ReplayFlags {
  std::filesystem::path log;
  std::string application;
  std::vector<std::string> policies;
  ReplayOptions options;
  ContainerSafety containers;
};

using FeedbackByApplication = std::map<std::string, std::vector<FeedbackRecord>>;

Result<std::vector<FeedbackRecord>> feedback_of(const Log& log, const ReplayFlags& flags) {
  FeedbackByApplication all;
  for (const FeedbackRecord& record : log.feedback()) all[record.application].push_back(record);
  if (all.empty()) {
    return Status::not_found(fmt::format(
        "the log {} has no feedback: it is kept by `foliot serve --log FOLDER` as clients send it for answers "
        "of applications",
        flags.log.string()));
  }
  std::string names;
  for (const auto& [name, records] : all) names += fmt::format("{}{}", names.empty() ? "" : ", ", in_quotes(name));
  const auto found = flags.application.empty() ? all.begin() : all.find(flags.application);
  if (found == all.end() || (flags.application.empty() && all.size() > 1)) {
    return Status::invalid_argument(
        fmt::format("the log {} has feedback of {}; choose one with --application", flags.log.string(), names));
  }
  return std::move(found->second);
}

Result<PolicyEstimate> judge(const std::string& text, const std::vector<FeedbackRecord>& feedback,
                             const ReplayFlags& flags) {
  FOLIOT_ASSIGN_OR_RETURN(const NamedPolicy named, read_judged_policy(text, models_of(feedback)));
  if (named.own == nullptr) return replay_policy(*named.policy, feedback, flags.options);
  const PolicyPlace place{container_launch_command(), python_package_folder(), flags.containers};
  FOLIOT_ASSIGN_OR_RETURN(const auto policy, ReplayedPolicy::start(named.own, place, [&](std::string_view line) {
                            fmt::print(stderr, "{}: {}\n", text, line);
                          }));
  Result<PolicyEstimate> estimate = replay_policy(*policy, feedback, flags.options);
  FOLIOT_RETURN_IF_ERROR(policy->status());
  return estimate;
}

std::string verdict(const PolicyEstimate& estimate) {
  if (std::abs(estimate.gain.mean) <= estimate.gain.half_width) return "undecided";
  return estimate.gain.mean > 0 ? "better" : "worse";
}

void print_notes(const std::string& policy, const PolicyEstimate& estimate) {
  if (estimate.left_out > 0) {
    fmt::print(stderr, "note: {} calls are left out, whose feedback lacks the loss of a model that was asked\n",
               estimate.left_out);
  }
  if (std::abs(estimate.weight.mean - 1) > kWeightIntervals * estimate.weight.half_width + 1e-9) {
    fmt::print(
        stderr,
        "note: {}: the weights have the mean {:.3f} and not 1: the log's probabilities do not fit its choices, or "
        "large weights are rare\n",
        policy, estimate.weight.mean);
  }
  if (estimate.effective_calls < kEffectiveCallsMin) {
    fmt::print(stderr, "note: {}: the log is worth {:.0f} calls of it; the interval is rough below {:.0f}\n", policy,
               estimate.effective_calls, kEffectiveCallsMin);
  }
}

Status run(const ReplayFlags& flags) {
  FOLIOT_ASSIGN_OR_RETURN(const Log log, Log::read(flags.log));
  for (const std::string& gap : log.gaps()) fmt::print(stderr, "note: {}\n", gap);
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<FeedbackRecord> feedback, feedback_of(log, flags));
  std::vector<PolicyEstimate> estimates;
  size_t width = std::string_view("as logged").size();
  for (const std::string& policy : flags.policies) {
    Result<PolicyEstimate> estimate = judge(policy, feedback, flags);
    if (!estimate.ok()) return estimate.status().with_context(policy);
    print_notes(policy, *estimate);
    estimates.push_back(*std::move(estimate));
    width = std::max(width, policy.size());
  }
  fmt::print("{:{}}  {:>19}  {:>19}  {:>7}  {:>11}  {}\n", "POLICY", width, "MEAN LOSS", "LESS THAN LOGGED", "CALLS",
             "WORTH CALLS", "VERDICT");
  const PolicyEstimate& first = estimates.front();
  fmt::print("{:{}}  {:>8.4f} +- {:>7.4f}  {:>19}  {:>7}  {:>11}  {}\n", "as logged", width, first.logged.mean,
             first.logged.half_width, "-", first.calls, first.calls, "-");
  for (size_t i = 0; i < estimates.size(); ++i) {
    const PolicyEstimate& of = estimates[i];
    fmt::print("{:{}}  {:>8.4f} +- {:>7.4f}  {:>8.4f} +- {:>7.4f}  {:>7}  {:>11.0f}  {}\n", flags.policies[i], width,
               of.loss.mean, of.loss.half_width, of.gain.mean, of.gain.half_width, of.calls, of.effective_calls,
               verdict(of));
  }
  fmt::print("Losses are from 0 (right) to 1; +- is a 95 % confidence interval.\n");
  return Status();
}

}  // namespace

void add_replay_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("replay", "Judge another policy of an application by a server's log");
  command->footer(
      "Reads the feedback that `foliot serve --log FOLDER` wrote, and estimates the mean loss that the policy would "
      "have "
      "had,\nby inverse propensity. The policy is a name, a table as application.toml has it,\nor the path of a file "
      "in Python.\n\n"
      "  foliot replay --log FOLDER --policy exp3\n"
      "  foliot replay --log FOLDER --application digits --policy ucb1 \\\n"
      "    --policy '{ name = \"split\", weights = { svm = 9, forest = 1 } }'");
  const auto flags = std::make_shared<ReplayFlags>();
  command->add_option("--log", flags->log, "folder that holds the log")->type_name("FOLDER")->required();
  command->add_option("--policy", flags->policies, "what to judge; may be given several times")
      ->type_name("POLICY")
      ->required()
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--application", flags->application, "whose feedback; needed if the log has several")
      ->type_name("NAME");
  command->add_option("--contexts-max", flags->options.contexts_max, "contexts with a state of their own")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  add_container_flags(*command, flags->containers);
  add_seed_flag(*command, flags->options.seed, "of a policy that chooses by chance");
  command->callback([flags, &exit_code] {
    const Status status = run(*flags);
    if (!status.ok()) fmt::print(stderr, "foliot replay: {}\n", status.message());
    exit_code = status.ok() ? 0 : 1;
  });
}

}  // namespace foliot
