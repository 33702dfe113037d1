#include "app/commands/models_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "answer/personal/items/personal_version.h"
#include "answer/personal/service/personal_file.h"
#include "answer/tasks/task_file.h"
#include "app/commands/confined_compile_command.h"
#include "app/commands/exit_code.h"
#include "app/commands/part_flags.h"
#include "engine/device/cpu/cpu_device.h"
#include "foundation/base/units.h"
#include "foundation/config/repository_path.h"
#include "foundation/net/http_call.h"
#include "foundation/platform/memory.h"
#include "load/client/inference_client.h"
#include "models/repository/compile_process.h"
#include "models/repository/foreign_files.h"
#include "models/repository/model_check.h"
#include "models/repository/model_folder.h"
#include "models/repository/package_store.h"

namespace foliot {
namespace {

struct Flags {
  std::filesystem::path repository;
  std::filesystem::path cache;
  std::string url;
  bool ready = false;
};

void print_model(const ModelFolder& model, size_t width, std::string_view state) {
  const auto slo = model.config.default_slo;
  fmt::print("{:{}}  {:>7}  {:<12}  {:>10}  {:<14}  {}\n", model.name, width, model.version, state,
             slo ? format_duration(*slo) : "none",
             model.is_container() ? "its own" : fmt::format("{}", fmt::join(model.config.compile.batch_sizes, ",")),
             model.model.string());
}

// What is said of a model that can be served, below its line.
void print_notes(const ModelFolder& model, const std::vector<std::string>& notes, size_t width) {
  for (const std::string& line : model_toml_lines(model.foreign, model.is_container())) {
    fmt::print("{:{}}  {:>7}  read: {}\n", "", width, "", line);
  }
  for (const auto& all : {notes, notes_of_foreign_settings(model)}) {
    for (const std::string& note : all) fmt::print("{:{}}  {:>7}  note: {}\n", "", width, "", note);
  }
}

// False: it cannot be served.
bool print_personal(const PersonalSpec& model, size_t width) {
  if (model.status.ok() && model.features) {
    fmt::print("{:{}}  {:>7}  {:<12}  {:>10}  {:<14}  features of '{}'\n", model.name, width, "", "personal",
               model.default_slo ? format_duration(*model.default_slo) : "none", "one user", model.features->model);
    return true;
  }
  const Result<std::filesystem::path> folder = newest_version(model.folder);
  Status status = model.status.ok() ? folder.status() : model.status;
  const std::string version = folder.ok() ? folder->filename().string() : "";
  if (status.ok()) status = PersonalVersion::open(*folder).status();
  if (!status.ok()) {
    fmt::print("{:{}}  {:>7}  cannot be served: {}\n", model.name, width, version, status.message());
    return false;
  }
  fmt::print("{:{}}  {:>7}  {:<12}  {:>10}  {:<14}  {}\n", model.name, width, version, "personal",
             model.default_slo ? format_duration(*model.default_slo) : "none", "one user", folder->string());
  return true;
}

// False: it cannot be served.
bool print_task(const TaskSpec& task, size_t width) {
  if (!task.status.ok()) {
    fmt::print("{:{}}  {:>7}  cannot be served: {}\n", task.name, width, "1", task.status.message());
    return false;
  }
  fmt::print("{:{}}  {:>7}  {:<12}  {:>10}  {:<14}  {}\n", task.name, width, "1", "task",
             task.default_slo ? format_duration(*task.default_slo) : "none",
             fmt::format("{} variants", task.variants.size()), task.file);
  return true;
}

// Each line is printed as soon as it is known. Returns the exit code.
Result<int> list(const Flags& flags) {
  FOLIOT_ASSIGN_OR_RETURN(const auto models, scan_repository(flags.repository, ModelConfig(), {}, flags.cache));
  const uint32_t threads = default_threads();
  const auto device = make_cpu_device({.threads = threads});
  PackageStore packages(cache_folder(flags.repository, flags.cache), WeightsTier::kDisk,
                        device->kind() + " " + device->fingerprint(), {});
  CompileProcess compiler(confined_compile_command(), {.memory_bytes = total_memory_bytes()});
  ModelCheck check(packages, compiler, threads);
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<PersonalSpec> personal, scan_personal(flags.repository));
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<TaskSpec> tasks, scan_tasks(flags.repository));
  if (models.empty() && personal.empty() && tasks.empty()) {
    return Status::not_found(fmt::format("there is no model in '{0}'; put one there, such as {0}/NAME/model.onnx",
                                         flags.repository.string()));
  }
  size_t width = 4;
  for (const ModelFolder& model : models) width = std::max(width, model.name.size());
  for (const PersonalSpec& model : personal) width = std::max(width, model.name.size());
  for (const TaskSpec& task : tasks) width = std::max(width, task.name.size());
  fmt::print("{:{}}  {:>7}  {:<12}  {:>10}  {:<14}  {}\n", "NAME", width, "VERSION", "STATE", "SLO", "BATCH SIZES",
             "FILE");
  bool all_ok = true;
  for (const PersonalSpec& model : personal) all_ok = print_personal(model, width) && all_ok;
  for (const TaskSpec& task : tasks) all_ok = print_task(task, width) && all_ok;
  for (const ModelFolder& model : models) {
    if (model.status.ok() && model.is_container()) {
      print_model(model, width, "container");
      print_notes(model, {}, width);
      continue;
    }
    const Result<ModelCheck::Finding> finding = check.check(model);
    if (finding.ok()) {
      print_model(model, width, finding->is_compiled ? "compiled" : "not compiled");
      print_notes(model, finding->notes, width);
    } else {
      fmt::print("{:{}}  {:>7}  cannot be served: {}\n", model.name, width, model.version, finding.status().message());
      all_ok = false;
    }
    std::fflush(stdout);
  }
  return all_ok ? 0 : 1;
}

// The client only lists models and sends no inference.
class NoResponses : public ResponseSink {
 public:
  void on_response(uint64_t, const Response&) override {}
};

// Returns the exit code.
Result<int> list_served(const std::string& url) {
  NoResponses responses;
  FOLIOT_ASSIGN_OR_RETURN(const auto client,
                          make_client({.protocol = ClientProtocol::kHttp, .url = url, .connections = 1}, responses));
  FOLIOT_RETURN_IF_ERROR(client->connect());
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<ListedModel> models, client->list_models());
  size_t width = 4;
  for (const ListedModel& model : models) width = std::max(width, model.name.size());
  fmt::print("{:{}}  {:>7}  {:<11}  {}\n", "NAME", width, "VERSION", "STATE", "REASON");
  bool all_ok = true;
  for (const ListedModel& model : models) {
    fmt::print("{:{}}  {:>7}  {:<11}  {}\n", model.name, width, model.version, model.state, model.reason);
    all_ok = all_ok && (model.state != "UNAVAILABLE" || model.unloaded());
  }
  return all_ok ? 0 : 1;
}

// Whether the server is ready, by its health endpoint, which needs no key. Returns the exit code.
Result<int> ask_whether_ready(const std::string& url) {
  constexpr Duration kReadyTimeout = Duration::seconds(3);
  const bool has_scheme = url.find("://") != std::string::npos;
  const auto ask = [&](std::string_view scheme) {
    return http_call(
        {.url = fmt::format("{}{}/v2/health/ready", scheme, url), .any_certificate = true, .timeout = kReadyTimeout});
  };
  Result<HttpAnswer> answer = ask(has_scheme ? "" : "http://");
  // A port of TLS closes a connection without it.
  if (!answer.ok() && !has_scheme) {
    if (Result<HttpAnswer> by_tls = ask("https://"); by_tls.ok()) answer = std::move(by_tls);
  }
  if (!answer.ok()) return answer.status();
  constexpr long kHttpOk = 200;
  const bool ready = answer->code == kHttpOk;
  fmt::print("{}: {}\n", ready ? "ready" : "not ready", answer->body);
  return ready ? 0 : kExitFailed;
}

}  // namespace

void add_models_command(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("models", "List the models of a repository or of a running server, with errors");
  command->footer(
      "A model of a repository is 'compiled', 'not compiled' (serving it will compile it first; that this can be done\n"
      "was tried with its smallest batch size), a 'container' (try it with foliot container check), 'personal', a "
      "'task', or "
      "it cannot be\n"
      "served, and why. Of a server, the states are those of\n"
      "its repository index. The exit code is 1 if a model cannot be served.\n\n"
      "  foliot models /srv/models\n"
      "  foliot models --url localhost:8000\n"
      "  foliot models --url localhost:8000 --ready");
  auto flags = std::make_shared<Flags>();
  auto* const repository = command->add_option("repository", flags->repository, "folder with a folder per model");
  command->add_option("--cache", flags->cache, "folder of compiled models")->default_str("REPOSITORY/.foliot");
  auto* const url =
      command->add_option("--url", flags->url, "ask a running server instead: its HTTP address, HOST:PORT");
  repository->excludes(url);
  command
      ->add_flag("--ready", flags->ready, "only ask whether the server is ready, by TLS as well; the exit code says it")
      ->needs(url);
  command->callback([flags, &exit_code] {
    if (flags->repository.empty() && flags->url.empty()) {
      throw CLI::ValidationError("foliot models", "give a repository's folder, or --url HOST:PORT of a server");
    }
    const Result<int> result = flags->url.empty() ? list(*flags)
                               : flags->ready     ? ask_whether_ready(flags->url)
                                                  : list_served(flags->url);
    if (!result.ok()) fmt::print(stderr, "foliot models: {}\n", result.status().message());
    exit_code = result.ok() ? *result : kExitFailed;
  });
}

}  // namespace foliot
