#include "app/commands/import_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "foundation/base/folder_listing.h"
#include "foundation/config/code_file.h"
#include "models/foreign/foreign_settings.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;

struct ImportFlags {
  fs::path folder;
  bool force = false;
};

// Whether a model.py, or `named`, lies in the folder or in one of a version.
Result<bool> has_code(const fs::path& folder, const std::string& named) {
  const fs::path code = is_code_file(named) ? named : std::string();
  FOLIOT_ASSIGN_OR_RETURN(const fs::path here, find_code_file(folder, code));
  if (!here.empty()) return true;
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<fs::path> entries, list_folder(folder));
  return std::ranges::any_of(entries, [&](const fs::path& entry) {
    const std::string name = entry.filename().string();
    const bool is_version = name.find_first_not_of("0123456789") == std::string::npos;
    if (!is_version) return false;
    const Result<fs::path> there = find_code_file(entry, code);
    return there.ok() && !there->empty();
  });
}

// Of the folder of one model. True: it has such settings.
Result<bool> import_model(const fs::path& folder, bool force) {
  FOLIOT_ASSIGN_OR_RETURN(const fs::path file, find_foreign_settings(folder));
  if (file.empty()) return false;
  std::error_code error;
  const std::string name = fs::canonical(folder, error).filename().string();
  FOLIOT_ASSIGN_OR_RETURN(const ForeignSettings settings, read_foreign_settings(file, name));
  FOLIOT_ASSIGN_OR_RETURN(const bool is_container, has_code(folder, settings.model_file));
  const fs::path to = folder / "model.toml";
  if (!force && fs::exists(fs::symlink_status(to, error))) {
    return Status::invalid_argument(fmt::format("{} exists; --force overwrites it", to.string()));
  }
  std::ofstream stream(to);
  stream << fmt::format("# By `foliot import`, of {}.\n", settings.file);
  for (const std::string& line : model_toml_lines(settings, is_container)) stream << line << '\n';
  if (!(stream << std::flush)) return Status::internal(fmt::format("cannot write {}", to.string()));
  fmt::print("{}\n", to.string());
  for (const std::string& note : settings.notes) fmt::print(stderr, "warning: {}: {}\n", folder.string(), note);
  if (!settings.tensors.empty() || !settings.model_file.empty() || settings.versions || !settings.version.empty()) {
    fmt::print(stderr, "note: {}: keep {}: tensors, versions and names of files are read of it alone\n",
               folder.string(), settings.file);
  }
  return true;
}

// Of a model's folder or a repository. Returns the exit code.
Result<int> import_all(const ImportFlags& flags) {
  std::error_code error;
  if (!fs::is_directory(flags.folder, error)) {
    return Status::not_found(fmt::format("{} is no folder; give a model's folder, or a folder with a folder per model",
                                         flags.folder.string()));
  }
  FOLIOT_ASSIGN_OR_RETURN(const bool is_model, import_model(flags.folder, flags.force));
  if (is_model) return 0;
  bool found = false;
  int exit_code = 0;
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<fs::path> entries, list_folder(flags.folder));
  for (const fs::path& entry : entries) {
    const Result<bool> is_folder = leads_to_folder(entry);
    if (entry.filename().string().starts_with('.') || (is_folder.ok() && !*is_folder)) continue;
    const Result<bool> imported = is_folder.ok() ? import_model(entry, flags.force) : is_folder;
    found = found || !imported.ok() || *imported;
    if (imported.ok()) continue;
    fmt::print(stderr, "foliot import: {}\n", imported.status().message());
    exit_code = 1;
  }
  if (found) return exit_code;
  return Status::not_found(
      fmt::format("{}: no config.pbtxt or model-settings.json here or in a folder of it", flags.folder.string()));
}

}  // namespace

void add_import_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("import", "Write what settings of Triton's and MLServer's say as model.toml");
  command->footer(
      "Serving needs no import: a config.pbtxt or model-settings.json in a model's folder is read, and what is not\n"
      "heeded is in the log (docs/FOLDERS.md). `foliot import` writes what was understood as a model.toml beside\n"
      "it, to be changed from then on, and prints the same warnings.\n\n"
      "  foliot import model_repository\n"
      "  foliot import model_repository/resnet50 --force\n\n"
      "The exit code is 1 if a file cannot be read, or a model.toml is there already.");
  auto flags = std::make_shared<ImportFlags>();
  command->add_option("folder", flags->folder, "a model's folder, or a folder with a folder per model")->required();
  command->add_flag("--force", flags->force, "overwrite a model.toml that exists");
  command->callback([flags, &exit_code] {
    const Result<int> result = import_all(*flags);
    if (!result.ok()) fmt::print(stderr, "foliot import: {}\n", result.status().message());
    exit_code = result.ok() ? *result : 1;
  });
}

}  // namespace foliot
