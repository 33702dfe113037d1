#include "app/commands/models_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "answer/personal/items/personal_version.h"
#include "answer/personal/service/personal_file.h"
#include "answer/tasks/task_file.h"
#include "app/commands/confined_compile_command.h"
#include "app/commands/exit_code.h"
#include "app/commands/json_line.h"
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
  bool json = false;
};

// What is listed of one name of a repository.
struct ListedName {
  std::string name;
  std::string version;
  std::string state;
  std::optional<Duration> slo;
  std::vector<uint32_t> batch_sizes;  // of a compiled model
  std::string rows;                   // of others: what is in place of batch sizes
  std::string file;
  std::string reason;  // not empty: it cannot be served, and nothing else is known
  std::vector<std::string> settings;
  std::vector<std::string> notes;
};

// Prints names as a table or, with --json, as an object in each line, as soon as they are known.
class Listing {
 public:
  Listing(bool json, size_t width) : json_(json), width_(width) {
    if (!json) print_row("NAME", "VERSION", "STATE", "SLO", "BATCH SIZES", "FILE");
  }

  void print(const ListedName& listed) {
    all_ok_ = all_ok_ && listed.reason.empty();
    json_ ? print_object(listed) : print_lines(listed);
    std::fflush(stdout);
  }
  [[nodiscard]] bool all_ok() const { return all_ok_; }

 private:
  void print_row(std::string_view name, std::string_view version, std::string_view state, std::string_view slo,
                 std::string_view rows, std::string_view file) const {
    fmt::print("{:{}}  {:>7}  {:<12}  {:>10}  {:<14}  {}\n", name, width_, version, state, slo, rows, file);
  }

  void print_lines(const ListedName& listed) const {
    if (!listed.reason.empty()) {
      fmt::print("{:{}}  {:>7}  cannot be served: {}\n", listed.name, width_, listed.version, listed.reason);
      return;
    }
    print_row(listed.name, listed.version, listed.state, listed.slo ? format_duration(*listed.slo) : "none",
              listed.rows.empty() ? fmt::format("{}", fmt::join(listed.batch_sizes, ",")) : listed.rows, listed.file);
    for (const std::string& line : listed.settings) fmt::print("{:{}}  {:>7}  read: {}\n", "", width_, "", line);
    for (const std::string& note : listed.notes) fmt::print("{:{}}  {:>7}  note: {}\n", "", width_, "", note);
  }

  static void print_object(const ListedName& listed) {
    nlohmann::ordered_json object{{"name", listed.name}, {"version", listed.version}};
    if (!listed.reason.empty()) {
      object["state"] = "broken";
      object["reason"] = listed.reason;
    } else {
      object["state"] = listed.state;
      object["file"] = listed.file;
      if (listed.slo) object["slo_ms"] = listed.slo->to_milliseconds();
      if (!listed.batch_sizes.empty()) object["batch_sizes"] = listed.batch_sizes;
      if (!listed.settings.empty()) object["settings"] = listed.settings;
      if (!listed.notes.empty()) object["notes"] = listed.notes;
    }
    print_json_line(object);
  }

  bool json_;
  size_t width_;
  bool all_ok_ = true;
};

ListedName look_at(const PersonalSpec& model) {
  ListedName result{model.name, "", "personal", model.default_slo, {}, "one user", "", "", {}, {}};
  if (model.status.ok() && model.features) {
    result.file = fmt::format("features of '{}'", model.features->model);
    return result;
  }
  const Result<std::filesystem::path> folder = newest_version(model.folder);
  Status status = model.status.ok() ? folder.status() : model.status;
  if (folder.ok()) result.version = folder->filename().string();
  if (status.ok()) status = PersonalVersion::open(*folder).status();
  if (status.ok()) {
    result.file = folder->string();
  } else {
    result.reason = status.message();
  }
  return result;
}

ListedName look_at(const TaskSpec& task) {
  ListedName result{task.name, "1", "task", task.default_slo, {}, "", task.file, "", {}, {}};
  result.rows = fmt::format("{} variants", task.variants.size());
  if (!task.status.ok()) result.reason = task.status.message();
  return result;
}

ListedName look_at(const ModelFolder& model, ModelCheck& check) {
  ListedName result{
      model.name, model.version, "container", model.config.default_slo, {}, "its own", model.model.string(), "", {},
      {}};
  if (!model.status.ok() || !model.is_container()) {
    const Result<ModelCheck::Finding> finding = check.check(model);
    if (!finding.ok()) {
      result.reason = finding.status().message();
      return result;
    }
    result.state = finding->is_compiled ? "compiled" : "not compiled";
    result.batch_sizes = model.config.compile.batch_sizes;
    result.rows.clear();
    result.notes = finding->notes;
  }
  result.settings = model_toml_lines(model.foreign, model.is_container());
  for (std::string& note : notes_of_foreign_settings(model)) result.notes.push_back(std::move(note));
  return result;
}

// Returns the exit code.
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
  Listing listing(flags.json, width);
  for (const PersonalSpec& model : personal) listing.print(look_at(model));
  for (const TaskSpec& task : tasks) listing.print(look_at(task));
  for (const ModelFolder& model : models) listing.print(look_at(model, check));
  return listing.all_ok() ? 0 : 1;
}

// The client only lists models and sends no inference.
class NoResponses : public ResponseSink {
 public:
  void on_response(uint64_t, const Response&) override {}
};

// Returns the exit code.
Result<int> list_served(const std::string& url, bool json) {
  NoResponses responses;
  FOLIOT_ASSIGN_OR_RETURN(const auto client,
                          make_client({.protocol = ClientProtocol::kHttp, .url = url, .connections = 1}, responses));
  FOLIOT_RETURN_IF_ERROR(client->connect());
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<ListedModel> models, client->list_models());
  size_t width = 4;
  for (const ListedModel& model : models) width = std::max(width, model.name.size());
  if (!json) fmt::print("{:{}}  {:>7}  {:<11}  {}\n", "NAME", width, "VERSION", "STATE", "REASON");
  bool all_ok = true;
  for (const ListedModel& model : models) {
    if (json) {
      nlohmann::ordered_json object{{"name", model.name}, {"version", model.version}, {"state", model.state}};
      if (!model.reason.empty()) object["reason"] = model.reason;
      print_json_line(object);
    } else {
      fmt::print("{:{}}  {:>7}  {:<11}  {}\n", model.name, width, model.version, model.state, model.reason);
    }
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
  command->add_flag("--json", flags->json, "print an object in each line, without a header");
  command->callback([flags, &exit_code] {
    if (flags->repository.empty() && flags->url.empty()) {
      throw CLI::ValidationError("foliot models", "give a repository's folder, or --url HOST:PORT of a server");
    }
    const Result<int> result = flags->url.empty() ? list(*flags)
                               : flags->ready     ? ask_whether_ready(flags->url)
                                                  : list_served(flags->url, flags->json);
    if (!result.ok()) fmt::print(stderr, "foliot models: {}\n", result.status().message());
    exit_code = result.ok() ? *result : kExitFailed;
  });
}

}  // namespace foliot
