#include "app/commands/jobs_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "app/commands/server_call.h"
#include "edge/jobs/job.h"
#include "foundation/base/units.h"

namespace foliot {
namespace {

using JobsJson = nlohmann::ordered_json;

constexpr auto kJobsPollInterval = std::chrono::milliseconds(500);

struct JobsFlags {
  ServerPlace server;
  std::string id;
  bool json = false;
  bool wait = false;
  std::string task;
  std::string model;
  std::vector<std::string> inputs;
  std::string output;
  std::optional<double> accuracy;
  std::optional<double> cost;
  std::string webhook;
  std::string name;
  std::string file;
  std::string validation;
  std::vector<std::string> precisions;
  std::vector<uint32_t> batch_sizes;
  std::string labels;
  std::optional<double> calibration;
  std::string default_slo;
};

Result<Job> ask_for_job(const JobsFlags& flags, const std::string& method, const std::string& path,
                        const std::string& body = "") {
  FOLIOT_ASSIGN_OR_RETURN(const std::string answer,
                          ask_server(flags.server, {.method = method, .path = path, .body = body}));
  return job_from_json(answer);
}

std::string job_progress(const Job& job) {
  const std::string share = job.total == 0 ? "" : fmt::format(" ({} %)", 100 * job.done / job.total);
  const std::string_view units = job.kind == kRegistrationKind ? "steps" : "rows";
  return fmt::format("{} of {} {}{}", job.done, job.total, units, share);
}

void print_job(const JobsFlags& flags, const Job& job) {
  if (flags.json) {
    fmt::print("{}\n", to_json(job));
    return;
  }
  fmt::print("job {} ({}): {}, {}\n", job.id, job.kind, to_string(job.state), job_progress(job));
  fmt::print("  request  {}\n", job.request);
  for (const auto& [variant, rows] : job.variants) fmt::print("  variant  {}: {} rows\n", variant, rows);
  for (const auto& [model, accuracy] : job.accuracies) fmt::print("  variant  {}: accuracy {:.4f}\n", model, accuracy);
  if (!job.waiting.empty()) fmt::print("  waiting  {}\n", job.waiting);
  if (!job.error.empty()) fmt::print("  error    {}\n", job.error);
  if (job.webhook) {
    fmt::print("  webhook  {}: {}{}\n", job.webhook->url, to_string(job.webhook->state),
               job.webhook->error.empty() ? "" : ", " + job.webhook->error);
  }
  if (job.started != TimePoint() && job.ended != TimePoint()) {
    fmt::print("  took     {}\n", format_duration(job.ended - job.started));
  }
}

// A line each time that it changed, until it has ended. Returns the exit code.
Result<int> follow_job(const JobsFlags& flags, Job job) {
  std::string shown;
  while (true) {
    const std::string line = fmt::format("job {}: {}, {}{}", job.id, to_string(job.state), job_progress(job),
                                         job.waiting.empty() ? "" : "; " + job.waiting);
    if (std::exchange(shown, line) != line) {
      fmt::print("{}\n", line);
      std::fflush(stdout);
    }
    if (job.has_ended()) break;
    std::this_thread::sleep_for(kJobsPollInterval);
    FOLIOT_ASSIGN_OR_RETURN(job, ask_for_job(flags, "GET", "/v2/jobs/" + job.id));
  }
  if (!job.error.empty()) return Status::internal(job.error);
  for (const auto& [model, accuracy] : job.accuracies) fmt::print("{}: accuracy {:.4f}\n", model, accuracy);
  return job.state == JobState::kSucceeded ? 0 : 1;
}

// The request as it is posted.
Result<int> submit_job(const JobsFlags& flags, const JobsJson& request) {
  FOLIOT_ASSIGN_OR_RETURN(Job job, ask_for_job(flags, "POST", "/v2/jobs",
                                               request.dump(-1, ' ', false, JobsJson::error_handler_t::replace)));
  if (flags.wait) return follow_job(flags, std::move(job));
  if (flags.json) {
    print_job(flags, job);
  } else {
    fmt::print("{}\n", job.id);
  }
  return 0;
}

Result<int> submit_offline_job(const JobsFlags& flags) {
  JobsJson request = {{"kind", "offline"}};
  if (!flags.task.empty()) request["task"] = flags.task;
  if (!flags.model.empty()) request["model"] = flags.model;
  for (const std::string& input : flags.inputs) {
    const size_t equals = input.find('=');
    if (equals == std::string::npos) {
      return Status::invalid_argument(fmt::format("--input {}: must be NAME=PATH.npy", input));
    }
    request["inputs"][input.substr(0, equals)] = input.substr(equals + 1);
  }
  request["output"] = flags.output;
  if (flags.accuracy) request["accuracy"] = *flags.accuracy;
  if (flags.cost) request["cost"] = *flags.cost;
  if (!flags.webhook.empty()) request["webhook"] = flags.webhook;
  return submit_job(flags, request);
}

Result<int> submit_registration(const JobsFlags& flags) {
  JobsJson request = {
      {"kind", kRegistrationKind}, {"task", flags.task}, {"file", flags.file}, {"validation", flags.validation}};
  const auto add_text = [&request](const char* member, const std::string& text) {
    if (!text.empty()) request[member] = text;
  };
  add_text("name", flags.name);
  add_text("labels", flags.labels);
  add_text("output", flags.output);
  add_text("default_slo", flags.default_slo);
  add_text("webhook", flags.webhook);
  if (!flags.precisions.empty()) request["precisions"] = flags.precisions;
  if (!flags.batch_sizes.empty()) request["batch_sizes"] = flags.batch_sizes;
  if (flags.calibration) request["calibration"] = *flags.calibration;
  if (flags.accuracy) request["accuracy"] = *flags.accuracy;
  return submit_job(flags, request);
}

Result<int> list_jobs(const JobsFlags& flags) {
  FOLIOT_ASSIGN_OR_RETURN(const std::string answer, ask_server(flags.server, {.path = "/v2/jobs"}));
  if (flags.json) {
    fmt::print("{}\n", answer);
    return 0;
  }
  const JobsJson json = JobsJson::parse(answer, nullptr, false);
  if (!json.is_object() || !json.contains("jobs")) return Status::internal("the server's answer is no list of jobs");
  fmt::print("{:<16}  {:<9}  {:<9}  {:>16}  {}\n", "ID", "KIND", "STATE", "DONE", "REQUEST");
  for (const JobsJson& each : json["jobs"]) {
    FOLIOT_ASSIGN_OR_RETURN(const Job job, job_from_json(each.dump()));
    fmt::print("{:<16}  {:<9}  {:<9}  {:>16}  {}\n", job.id, job.kind, to_string(job.state),
               fmt::format("{}/{}", job.done, job.total), job.request);
  }
  return 0;
}

Result<int> show_job(const JobsFlags& flags) {
  FOLIOT_ASSIGN_OR_RETURN(Job job, ask_for_job(flags, "GET", "/v2/jobs/" + flags.id));
  if (flags.wait) return follow_job(flags, std::move(job));
  print_job(flags, job);
  return 0;
}

Result<int> cancel_job(const JobsFlags& flags) {
  FOLIOT_ASSIGN_OR_RETURN(Job job, ask_for_job(flags, "POST", "/v2/jobs/" + flags.id + "/cancel", "{}"));
  print_job(flags, job);
  return 0;
}

CLI::App* add_jobs_subcommand(CLI::App& jobs, const std::string& name, const std::string& help,
                              const std::shared_ptr<JobsFlags>& flags, Result<int> (*run)(const JobsFlags&),
                              int& exit_code) {
  CLI::App* const command = jobs.add_subcommand(name, help);
  add_server_flags(*command, flags->server);
  command->add_flag("--json", flags->json, "print what the server answers");
  command->callback([flags, run, &exit_code] {
    const Result<int> result = run(*flags);
    if (!result.ok()) fmt::print(stderr, "foliot jobs: {}\n", result.status().message());
    exit_code = result.ok() ? *result : 1;
  });
  return command;
}

void add_register_subcommand(CLI::App& jobs, const std::shared_ptr<JobsFlags>& flags, int& exit_code) {
  CLI::App* const registers = add_jobs_subcommand(jobs, "register", "Register a network as variants of a task", flags,
                                                  &submit_registration, exit_code);
  registers->add_option("--task", flags->task, "name of the task, which is made if there is none")->required();
  registers->add_option("--name", flags->name, "of the network: variants are named NAME-PRECISION")
      ->default_str("the task's");
  registers->add_option("--file", flags->file, "the network, PATH.onnx in float32")->required();
  registers->add_option("--validation", flags->validation, "PATH.npz with the inputs, rows first, and the labels")
      ->required();
  registers->add_option("--precisions", flags->precisions, "float32, bfloat16, int8")->default_str("all");
  registers->add_option("--batch-sizes", flags->batch_sizes, "that are compiled")->default_str("1 2 4 8");
  registers->add_option("--labels", flags->labels, "the array that has the classes")->default_str("labels");
  registers->add_option("--output", flags->output, "the output that is compared with them")->default_str("the first");
  registers->add_option("--calibration", flags->calibration, "share of the rows that calibrate int8")
      ->default_str("0.2");
  registers->add_option("--accuracy", flags->accuracy, "of a new task: what calls get at least that ask for none");
  registers->add_option("--default-slo", flags->default_slo, "of a new task: deadline of calls that bring none");
  registers->add_option("--webhook", flags->webhook, "URL that is notified when the job ends");
  registers->add_flag("--wait", flags->wait, "show the progress until it has ended; exit with 1 if it failed");
}

}  // namespace

void add_jobs_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("jobs", "Submit, list, show and cancel jobs of a server");
  command->require_subcommand(1);
  command->footer(
      "The server keeps jobs if it was started with --jobs FOLDER, to which all paths are relative.\n\n"
      "  foliot serve models --jobs /srv/jobs\n"
      "  foliot jobs submit --task digits --input x=rows.npy --output answers --accuracy 0.9 --wait\n"
      "  foliot jobs register --task digits --file digits.onnx --validation digits.npz --wait\n"
      "  foliot jobs list\n"
      "  foliot jobs cancel 0123456789abcdef");
  auto flags = std::make_shared<JobsFlags>();
  CLI::App* const submits =
      add_jobs_subcommand(*command, "submit", "Submit an offline job", flags, &submit_offline_job, exit_code);
  auto* const task = submits->add_option("--task", flags->task, "name of a task");
  submits->add_option("--model", flags->model, "name of a model, instead of a task")->excludes(task);
  submits->add_option("--input", flags->inputs, "NAME=PATH.npy, rows first; once for each input")
      ->required()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  submits->add_option("--output", flags->output, "folder that is made for the outputs")->required();
  submits->add_option("--accuracy", flags->accuracy, "of a task, at least");
  submits->add_option("--cost", flags->cost, "of a task, at most, of one row, in dollars");
  submits->add_option("--webhook", flags->webhook, "URL that is notified when the job ends");
  submits->add_flag("--wait", flags->wait, "show the progress until it has ended; exit with 1 if it failed");
  add_register_subcommand(*command, flags, exit_code);
  add_jobs_subcommand(*command, "list", "List jobs", flags, &list_jobs, exit_code);
  CLI::App* const shows = add_jobs_subcommand(*command, "show", "Show a job", flags, &show_job, exit_code);
  shows->add_option("id", flags->id, "of the job")->required();
  shows->add_flag("--wait", flags->wait, "show the progress until it has ended; exit with 1 if it failed");
  CLI::App* const cancels = add_jobs_subcommand(*command, "cancel", "Cancel a job", flags, &cancel_job, exit_code);
  cancels->add_option("id", flags->id, "of the job")->required();
}

}  // namespace foliot
