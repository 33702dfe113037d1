#include "app/commands/models_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/units.h"
#include "client/inference_client.h"
#include "core/tensor.h"
#include "repository/model_folder.h"

namespace foliot {
namespace {

int list(const std::filesystem::path& repository) {
  const auto models = scan_repository(repository, ModelConfig());
  if (!models.ok()) {
    fmt::print(stderr, "foliot models: {}\n", models.status().message());
    return 1;
  }
  size_t width = 4;
  for (const ModelFolder& model : *models) width = std::max(width, model.name.size());
  fmt::print("{:{}}  {:>7}  {:>10}  {:<14}  {}\n", "NAME", width, "VERSION", "SLO", "BATCH SIZES", "FILE");
  bool all_ok = true;
  for (const ModelFolder& model : *models) {
    if (!model.status.ok()) {
      fmt::print("{:{}}  cannot be served: {}\n", model.name, width, model.status.message());
      all_ok = false;
      continue;
    }
    const auto slo = model.config.default_slo;
    fmt::print("{:{}}  {:>7}  {:>10}  {:<14}  {}\n", model.name, width, model.version,
               slo ? format_duration(*slo) : "none",
               fmt::format("{}", fmt::join(model.config.compile.batch_sizes, ",")), model.model.string());
  }
  return all_ok ? 0 : 1;
}

// The client is only asked, never made to send.
class NoResponses : public ResponseSink {
 public:
  void on_response(uint64_t, const Response&) override {}
};

Status list_served(const std::string& url) {
  NoResponses responses;
  FOLIOT_ASSIGN_OR_RETURN(const auto client,
                          make_client({.protocol = ClientProtocol::kHttp, .url = url, .connections = 1}, responses));
  FOLIOT_RETURN_IF_ERROR(client->connect());
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<std::string> names, client->ready_models());
  for (const std::string& name : names) {
    FOLIOT_ASSIGN_OR_RETURN(const ModelDescription model, client->describe(name));
    std::vector<std::string> inputs;
    for (const TensorDescription& input : model.inputs) {
      inputs.push_back(fmt::format("{} {} {}", input.name, input.datatype, to_string(input.shape)));
    }
    fmt::print("{:24}  READY  {}\n", name, fmt::join(inputs, ", "));
  }
  return Status();
}

int list_served_or_fail(const std::string& url) {
  const Status status = list_served(url);
  if (!status.ok()) fmt::print(stderr, "foliot models: {}\n", status.message());
  return status.ok() ? 0 : 1;
}

}  // namespace

void add_models_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "models", "List the models of a repository and what is wrong with them, or those that a server serves");
  struct Flags {
    std::filesystem::path repository;
    std::string url;
  };
  auto flags = std::make_shared<Flags>();
  auto* const repository = command->add_option("repository", flags->repository, "folder with a folder per model");
  auto* const url =
      command->add_option("--url", flags->url, "ask a running server instead: its HTTP address, HOST:PORT");
  repository->excludes(url);
  command->callback([flags, &exit_code] {
    if (flags->repository.empty() && flags->url.empty()) {
      throw CLI::ValidationError("foliot models", "say which: a repository's folder, or --url HOST:PORT of a server");
    }
    exit_code = flags->url.empty() ? list(flags->repository) : list_served_or_fail(flags->url);
  });
}

}  // namespace foliot
