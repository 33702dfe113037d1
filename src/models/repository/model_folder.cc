#include "models/repository/model_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>
#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include "answer/pipelines/pipeline_file.h"
#include "engine/compiler/onnx_reader.h"
#include "foundation/base/folder_listing.h"
#include "foundation/config/code_file.h"
#include "foundation/config/repository_path.h"
#include "foundation/core/version_table.h"
#include "models/repository/foreign_files.h"
#include "models/repository/step_folder.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kGraphFile = "model.onnx";

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// Pipelines and the like have readers of their own.
bool is_other_than_model(const fs::path& folder) {
  return is_file(folder / "application.toml") || is_file(folder / "pipeline.toml") ||
         is_file(folder / "personal.toml") || is_file(folder / "task.toml");
}

// What a client may call a model, in a path of HTTP too.
Status check_name(const std::string& name) {
  constexpr size_t kNameBytesMax = 255;
  const bool plain = std::ranges::none_of(name, [](unsigned char c) { return c < ' ' || c == 0x7f || c == '/'; });
  if (!name.empty() && name.size() <= kNameBytesMax && plain && name != "." && name != "..") return {};
  return Status::invalid_argument(fmt::format(
      "a model's name has 1 to {} bytes, no '/' and no control characters; give it another in its model.toml",
      kNameBytesMax));
}

// A model must not be able to show files of this machine that are none of its own.
Status check_inside(const fs::path& repository, const fs::path& model) {
  std::error_code error;
  const fs::path target = fs::canonical(model, error);
  if (error) return Status::invalid_argument(fmt::format("{}: {}", model.string(), error.message()));
  const fs::path relative = target.lexically_relative(fs::canonical(repository, error));
  if (!error && !relative.empty() && *relative.begin() != "..") return {};
  return Status::invalid_argument(fmt::format("{} leads out of the repository", model.string()));
}

// The file that a model is, in the folder of the model or of its version; empty: there is none.
// `graph_file`: its name if it is a graph; empty: the usual one.
// Errors: kInvalidArgument if there are two, or if they cannot be looked at.
Result<fs::path> find_main_file(const fs::path& folder, const std::string& named) {
  const bool names_code = is_code_file(named);
  const fs::path graph = folder / (named.empty() || names_code ? std::string(kGraphFile) : named);
  FOLIOT_ASSIGN_OR_RETURN(const bool has_graph, leads_to_file(graph));
  FOLIOT_ASSIGN_OR_RETURN(const fs::path code, find_code_file(folder, names_code ? named : std::string()));
  if (has_graph && code.filename() == kCodeFile) {
    return Status::invalid_argument(
        fmt::format("{} and {} are two models of one name; remove one of them", graph.string(), code.string()));
  }
  return has_graph ? graph : code;
}

// Of each version the file that its model is. Errors: as of find_main_file().
using VersionFiles = std::map<uint64_t, fs::path>;
Result<VersionFiles> find_versions(const fs::path& folder, const ForeignSettings& foreign) {
  VersionFiles versions;
  const auto entries = list_folder(folder);
  if (!entries.ok()) return Status::invalid_argument(entries.status().message());
  for (const fs::path& entry : *entries) {
    const auto version = parse_version(entry.filename().string());
    if (!version) continue;
    FOLIOT_ASSIGN_OR_RETURN(const fs::path file, find_main_file(entry, foreign.model_file));
    if (!file.empty()) versions[*version] = file;
  }
  FOLIOT_ASSIGN_OR_RETURN(const fs::path bare, find_main_file(folder, foreign.model_file));
  if (!bare.empty() && !versions.empty()) {
    return Status::invalid_argument(fmt::format("{} and {} are two models of one name; remove one of them",
                                                bare.string(), versions.rbegin()->second.string()));
  }
  if (!bare.empty()) versions[parse_version(foreign.version).value_or(1)] = bare;
  if (!versions.empty()) return versions;
  const std::string& graph_file = foreign.model_file;
  return Status::not_found(fmt::format("{}: no {} or {} here or in a version folder such as {}/1{}", folder.string(),
                                       graph_file.empty() ? kGraphFile : graph_file, kCodeFile, folder.string(),
                                       foreign.otherwise.empty() ? hint_of_foreign_model(folder) : foreign.otherwise));
}

void use_version(const VersionFiles::value_type& version, ModelFolder& model) {
  model.version = std::to_string(version.first);
  model.model = version.second;
}

// The settings of another server's that lie in this folder of a model, if any. Errors say where they are wrong.
Status read_foreign(const fs::path& repository, const fs::path& folder, ModelFolder& model) {
  FOLIOT_ASSIGN_OR_RETURN(const fs::path file, find_foreign_settings(folder));
  if (file.empty()) return Status();
  FOLIOT_RETURN_IF_ERROR(check_inside(repository, file));
  FOLIOT_ASSIGN_OR_RETURN(model.foreign, read_foreign_settings(file, model.name));
  return Status();
}

// `found`: whether there is a model.
Status read_settings(const fs::path& settings, const ModelConfig& defaults, const Status& found, ModelFolder& model) {
  ModelConfig unless_said = defaults;
  if (model.is_container()) unless_said.batch_delay.reset();
  apply_foreign_settings(model.foreign, unless_said);
  FOLIOT_ASSIGN_OR_RETURN(model.config, read_model_config(settings, unless_said));
  reconcile_foreign_settings(model);
  const std::string name = model.config.name.value_or(model.name);
  FOLIOT_RETURN_IF_ERROR(check_name(name).with_context(model.folder.string()));
  model.name = name;
  FOLIOT_RETURN_IF_ERROR(found);
  if (!model.config.container || model.is_container()) return Status();
  return Status::invalid_argument(
      fmt::format("{} has a table [container], and {} is no container; remove the table, or serve a {}",
                  settings.string(), model.model.string(), kCodeFile));
}

// Which of these are served, and by which rules. Errors: kInvalidArgument if none is there that is asked for; those of
// version_rules().
Result<std::vector<uint64_t>> choose(const VersionFiles& files, ModelFolder& model) {
  std::vector<uint64_t> there;
  for (const auto& [version, file] : files) there.push_back(version);
  const VersionConfig& config = model.config.versions;
  std::vector<uint64_t> chosen = choose_versions(config.choice, there);
  std::vector<uint64_t> missing;
  std::ranges::set_difference(config.choice.listed, there, std::back_inserter(missing));
  if (chosen.empty()) {
    return Status::invalid_argument(fmt::format("{}: version {} is to be served, and there is a model of {}",
                                                model.folder.string(), list_versions(missing), list_versions(there)));
  }
  if (!missing.empty()) {
    model.foreign.notes.push_back(
        fmt::format("there is no model of version {}, which is to be served: there is one of {}",
                    list_versions(missing), list_versions(there)));
  }
  FOLIOT_ASSIGN_OR_RETURN(model.rules, version_rules(config, chosen, (model.folder / "model.toml").string()));
  return chosen;
}

// The models that `model` is, of which it has the folder and its name. Errors are the status of each.
std::vector<ModelFolder> read_models(const fs::path& repository, const ModelConfig& defaults, ModelFolder model) {
  const auto failed = [&model](const Status& status) {
    model.status = status;
    return std::vector{model};
  };
  const fs::path settings = model.folder / "model.toml";
  if (Status status = check_inside(repository, model.folder); !status.ok()) return failed(status);
  if (is_file(settings)) {
    if (Status status = check_inside(repository, settings); !status.ok()) return failed(status);
  }
  if (Status status = read_foreign(repository, model.folder, model); !status.ok()) return failed(status);
  const ModelFolder unread = model;
  const Result<VersionFiles> files = find_versions(model.folder, model.foreign);
  if (files.ok()) use_version(*files->rbegin(), model);
  if (Status status = read_settings(settings, defaults, files.status(), model); !status.ok()) return failed(status);
  const auto noted = static_cast<ptrdiff_t>(model.foreign.notes.size());
  const Result<std::vector<uint64_t>> chosen = choose(*files, model);
  if (!chosen.ok()) return failed(chosen.status());
  std::vector<ModelFolder> models;
  for (const uint64_t version : *chosen) {
    ModelFolder& served = models.emplace_back(unread);
    std::vector<std::string>& notes = served.foreign.notes;
    notes.insert(notes.end(), model.foreign.notes.begin() + noted, model.foreign.notes.end());
    use_version(*files->find(version), served);
    served.status = read_settings(settings, defaults, Status(), served);
    if (served.status.ok()) served.status = check_inside(repository, served.model);
    if (model.config.versions.is_one()) continue;
    served.rules = model.rules;
    if (version != chosen->back()) served.foreign.notes.clear();  // they are said once
    served.name = versioned_name(served.name, served.version);
  }
  return models;
}

// Those of another server say where the files of the one model lie.
bool has_settings(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) return false;
  const Result<fs::path> settings = find_foreign_settings(folder);
  return settings.ok() && !settings->empty();
}

ModelFolder whole_folder(const fs::path& repository, const ModelConfig& defaults) {
  std::error_code error;
  return {.name = fs::canonical(repository, error).filename().string(),
          .folder = repository,
          .model = {},
          .config = defaults,
          .status = {}};
}

// Folders of further models, which are not read where settings make the repository one model.
std::vector<std::string> hidden_models(const fs::path& repository) {
  std::vector<std::string> names;
  const auto entries = list_folder(repository);
  for (const fs::path& entry : entries.ok() ? *entries : std::vector<fs::path>()) {
    const std::string name = entry.filename().string();
    if (name.starts_with('.') || parse_version(name) || !fs::is_directory(entry)) continue;
    const auto model = find_lone_model(entry);
    if (model.ok() && *model) names.push_back(name);
  }
  return names;
}

// The one model that a repository is. A file may be a link to anywhere: the command line names it.
ModelFolder read_lone_model(const fs::path& repository, const fs::path& file, ModelConfig defaults) {
  std::error_code error;
  const fs::path folder = repository_folder(file);
  const bool owns_folder = repository != file || is_code_file(file);
  const fs::path named = owns_folder ? fs::canonical(folder, error).filename() : file.stem();
  defaults.compile.owns_folder = owns_folder;
  ModelFolder model{.name = named.string(), .folder = folder, .model = file, .config = defaults, .status = {}};
  if (owns_folder) model.status = read_foreign(folder, folder, model);
  if (model.status.ok()) model.status = read_settings(config_file_of(file), defaults, Status(), model);
  if (model.status.ok() && repository != file) model.status = check_inside(folder, file);
  if (model.status.ok() && !model.config.versions.is_one()) {
    model.status = Status::invalid_argument(
        fmt::format("{} has 'versions', [labels] or [split], and {} is one version alone; remove them, or serve a "
                    "folder of models",
                    config_file_of(file).string(), file.string()));
  }
  return model;
}

// The models at an entry of the repository; none if it is something else, such as a file.
std::vector<ModelFolder> read_entry(const fs::path& repository, const fs::path& entry, const ModelConfig& defaults) {
  if (entry.filename().string().starts_with('.')) return {};
  const Result<bool> folder = leads_to_folder(entry);
  if (folder.ok() && (!*folder || is_other_than_model(entry))) return {};
  ModelFolder model{.name = entry.filename().string(), .folder = entry, .model = {}, .config = defaults, .status = {}};
  if (folder.ok()) return read_models(repository, defaults, std::move(model));
  model.status = folder.status();
  return {model};
}

void mark_duplicates(std::vector<ModelFolder>& models) {
  std::map<std::string_view, ModelFolder*> first;
  for (ModelFolder& model : models) {
    ModelFolder* const other = first.try_emplace(client_name(model.name), &model).first->second;
    if (other == &model || (other->folder == model.folder && other->name != model.name)) continue;
    model.status = other->status = Status::invalid_argument(
        fmt::format("{} and {} are two models of one name, '{}'; give one another name in its model.toml",
                    other->model.parent_path().string(), model.model.parent_path().string(), client_name(model.name)));
  }
}

// Size and times of a file; all zero if it is not there.
std::string file_signature(const fs::path& file) {
  struct stat status {};
  ::stat(file.c_str(), &status);
  return fmt::format("{} {} {} {}.{} {}.{}\n", file.string(), status.st_ino, status.st_size, status.st_mtim.tv_sec,
                     status.st_mtim.tv_nsec, status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
}

Result<std::vector<fs::path>> list_named_files(const fs::path& folder, const fs::path& model) {
  std::vector<fs::path> files{model};
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<fs::path> entries, list_folder(folder));
  for (const fs::path& entry : entries) {
    const bool is_other = entry.extension() == ".onnx" || entry.extension() == ".toml";
    if (!is_other && is_named_after(entry, model) && is_file(entry)) files.push_back(entry);
  }
  return files;
}

}  // namespace

bool ModelFolder::is_container() const { return is_code_file(model); }

bool ModelFolder::is_convertible() const {
  constexpr uint64_t kBytesMax = uint64_t{64} << 20;
  if (!is_container() || model.filename() == kCodeFile) return false;
  if (config.container && (!config.container->compile || !config.container->gpus.empty())) return false;
  if (model.filename() == kMlflowFile) return model_files_bytes(*this) <= kBytesMax;
  std::error_code error;
  const uint64_t bytes = fs::file_size(model, error);
  return !error && bytes <= kBytesMax;
}

Result<std::vector<fs::path>> list_model_files(const fs::path& model, bool owns_folder) {
  constexpr size_t kFilesMax = 10'000;
  std::error_code error;
  if (!is_file(model)) return Status::not_found(fmt::format("there is no file {}", model.string()));
  const fs::path folder = model.parent_path().empty() ? "." : model.parent_path();
  if (!owns_folder) return list_named_files(folder, model);
  std::vector<fs::path> files{model};
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with('.')) {
      entry.disable_recursion_pending();
    } else if (is_file(entry->path()) && name != "model.toml" && !is_foreign_settings(name) && entry->path() != model) {
      files.push_back(entry->path());
    }
    if (files.size() > kFilesMax) {
      return Status::invalid_argument(
          fmt::format("{} has more than {} files; keep only the model there", folder.string(), kFilesMax));
    }
  }
  if (error) return Status::internal(fmt::format("cannot list {}: {}", folder.string(), error.message()));
  std::sort(files.begin() + 1, files.end());
  return files;
}

std::string signature_of(const ModelFolder& folder) {
  std::string signature = folder.version + "\n" + file_signature(folder.folder / "model.toml");
  if (!folder.foreign.file.empty()) signature += file_signature(folder.folder / folder.foreign.file);
  const auto files = list_model_files(folder.model, folder.config.compile.owns_folder);
  if (!files.ok()) return signature + files.status().message() + folder.status.message();
  for (const fs::path& file : *files) signature += file_signature(file);
  return signature;
}

uint64_t model_files_bytes(const ModelFolder& folder) {
  uint64_t bytes = 0;
  const auto files = list_model_files(folder.model, folder.config.compile.owns_folder);
  if (!files.ok()) return 0;
  for (const fs::path& file : *files) {
    std::error_code error;
    const uint64_t size = fs::file_size(file, error);
    if (!error) bytes += size;
  }
  return bytes;
}

Status check_repository(const fs::path& repository) { return find_lone_model(repository).status(); }

Result<std::vector<ModelFolder>> scan_repository(const fs::path& repository, const ModelConfig& defaults,
                                                 const std::vector<std::string>& patterns, const fs::path& cache) {
  std::vector<ModelFolder> models;
  FOLIOT_ASSIGN_OR_RETURN(const std::optional<fs::path> lone, find_lone_model(repository));
  if (lone && has_settings(repository)) {
    models = read_models(repository, defaults, whole_folder(repository, defaults));
    if (const auto hidden = hidden_models(repository); !hidden.empty() && !models.empty()) {
      models.front().foreign.notes.push_back(
          fmt::format("its settings make the folder one model, so models in {} are not read: remove the settings, or "
                      "move the folders elsewhere",
                      fmt::join(hidden, ", ")));
    }
  } else if (lone) {
    models.push_back(read_lone_model(repository, *lone, defaults));
  }
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<fs::path> entries, list_repository(repository));
  for (const fs::path& entry : entries) {
    for (ModelFolder& model : read_entry(repository, entry, defaults)) models.push_back(std::move(model));
  }
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<PipelineSpec> pipelines, scan_pipelines(repository));
  const fs::path steps = cache_folder(repository, cache) / "steps";
  for (const PipelineSpec& pipeline : pipelines) {
    for (ModelFolder& step : make_step_folders(pipeline, steps, defaults)) models.push_back(std::move(step));
  }
  std::sort(models.begin(), models.end(), [](const ModelFolder& a, const ModelFolder& b) {
    return std::pair(a.name, a.model) < std::pair(b.name, b.model);
  });
  mark_duplicates(models);
  const auto matches = [&](const ModelFolder& model) {
    return patterns.empty() || std::ranges::any_of(patterns, [&](const std::string& pattern) {
             return fnmatch(pattern.c_str(), std::string(client_name(model.name)).c_str(), 0) == 0;
           });
  };
  std::erase_if(models, [&](const ModelFolder& model) { return !matches(model); });
  return models;
}

}  // namespace foliot
