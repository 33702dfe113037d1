#include "app/models_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "base/units.h"
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
               slo ? format_duration(*slo) : "none", fmt::format("{}", fmt::join(model.config.compile.batch_sizes, ",")),
               model.model.string());
  }
  return all_ok ? 0 : 1;
}

}  // namespace

void add_models_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("models", "List the models of a repository, and what is wrong with them");
  auto repository = std::make_shared<std::filesystem::path>();
  command->add_option("repository", *repository, "folder with a folder per model")->required();
  command->callback([repository, &exit_code] { exit_code = list(*repository); });
}

}  // namespace foliot
