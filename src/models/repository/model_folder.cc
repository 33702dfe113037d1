#include "models/repository/model_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "answer/pipelines/pipeline_file.h"
#include "engine/compiler/onnx_reader.h"
#include "foundation/base/folder_listing.h"
#include "foundation/config/repository_path.h"
#include "models/repository/foreign_files.h"
#include "models/repository/step_folder.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kGraphFile = "model.onnx";
constexpr std::string_view kCodeFile = "model.py";

std::optional<uint64_t> parse_version(const std::string& text) {
  uint64_t version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (error != std::errc() || end != text.data() + text.size() || text.front() == '0') return std::nullopt;
  return version;
}

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
Result<fs::path> find_main_file(const fs::path& folder, const std::string& graph_file) {
  const fs::path graph = folder / (graph_file.empty() ? std::string(kGraphFile) : graph_file);
  const fs::path code = folder / kCodeFile;
  FOLIOT_ASSIGN_OR_RETURN(const bool has_graph, leads_to_file(graph));
  FOLIOT_ASSIGN_OR_RETURN(const bool has_code, leads_to_file(code));
  if (has_graph && has_code) {
    return Status::invalid_argument(
        fmt::format("{} and {} are two models of one name; remove one of them", graph.string(), code.string()));
  }
  return has_graph ? graph : has_code ? code : fs::path();
}

// Whether this version may be served.
bool is_wanted(const ForeignSettings& settings, uint64_t version) {
  return settings.versions.empty() || std::ranges::find(settings.versions, version) != settings.versions.end();
}

Status find_model(const fs::path& folder, ModelFolder& model) {
  const std::string& graph_file = model.foreign.model_file;
  std::map<uint64_t, fs::path> versions;
  const auto entries = list_folder(folder);
  if (!entries.ok()) return Status::invalid_argument(entries.status().message());
  for (const fs::path& entry : *entries) {
    const auto version = parse_version(entry.filename().string());
    if (!version || !is_wanted(model.foreign, *version)) continue;
    FOLIOT_ASSIGN_OR_RETURN(const fs::path file, find_main_file(entry, graph_file));
    if (!file.empty()) versions[*version] = file;
  }
  FOLIOT_ASSIGN_OR_RETURN(const fs::path bare, find_main_file(folder, graph_file));
  if (!bare.empty() && !versions.empty()) {
    return Status::invalid_argument(fmt::format("{} and {} are two models of one name; remove one of them",
                                                bare.string(), versions.rbegin()->second.string()));
  }
  if (!bare.empty()) {
    model.model = bare;
    if (!model.foreign.version.empty()) model.version = model.foreign.version;
  } else if (!versions.empty()) {
    model.version = std::to_string(versions.rbegin()->first);
    model.model = versions.rbegin()->second;
  } else if (!model.foreign.versions.empty()) {
    return Status::not_found(fmt::format("{}: {} asks for version {}, and there is no model of it", folder.string(),
                                         model.foreign.file, fmt::join(model.foreign.versions, " or ")));
  } else {
    return Status::not_found(
        fmt::format("{}: no {} or {} here or in a version folder such as {}/1{}", folder.string(),
                    graph_file.empty() ? kGraphFile : graph_file, kCodeFile, folder.string(),
                    model.foreign.otherwise.empty() ? hint_of_foreign_model(folder) : model.foreign.otherwise));
  }
  return Status();
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

Status read_model(const fs::path& repository, const ModelConfig& defaults, ModelFolder& model) {
  const fs::path settings = model.folder / "model.toml";
  FOLIOT_RETURN_IF_ERROR(check_inside(repository, model.folder));
  if (is_file(settings)) FOLIOT_RETURN_IF_ERROR(check_inside(repository, settings));
  FOLIOT_RETURN_IF_ERROR(read_foreign(repository, model.folder, model));
  const Status found = find_model(model.folder, model);
  FOLIOT_RETURN_IF_ERROR(read_settings(settings, defaults, found, model));
  return check_inside(repository, model.model);
}

// The one model that a repository is. A file may be a link to anywhere: the command line names it.
ModelFolder read_lone_model(const fs::path& repository, const fs::path& file, ModelConfig defaults) {
  std::error_code error;
  const fs::path folder = repository_folder(file);
  const bool owns_folder = repository != file || file.filename() == kCodeFile;
  const fs::path named = owns_folder ? fs::canonical(folder, error).filename() : file.stem();
  defaults.compile.owns_folder = owns_folder;
  ModelFolder model{.name = named.string(), .folder = folder, .model = file, .config = defaults, .status = {}};
  if (owns_folder) model.status = read_foreign(folder, folder, model);
  if (model.status.ok()) model.status = read_settings(config_file_of(file), defaults, Status(), model);
  if (model.status.ok() && repository != file) model.status = check_inside(folder, file);
  return model;
}

// The model at an entry of the repository; nothing: the entry is none, such as a file.
std::optional<ModelFolder> read_entry(const fs::path& repository, const fs::path& entry, const ModelConfig& defaults) {
  if (entry.filename().string().starts_with('.')) return std::nullopt;
  const Result<bool> folder = leads_to_folder(entry);
  if (folder.ok() && (!*folder || is_other_than_model(entry))) return std::nullopt;
  ModelFolder model{.name = entry.filename().string(), .folder = entry, .model = {}, .config = defaults, .status = {}};
  model.status = folder.ok() ? read_model(repository, defaults, model) : folder.status();
  return model;
}

void mark_duplicates(std::vector<ModelFolder>& models) {
  for (size_t i = 1; i < models.size(); ++i) {
    if (models[i].name != models[i - 1].name) continue;
    const Status status = Status::invalid_argument(fmt::format(
        "{} and {} are two models of one name, '{}'; give one another name in its model.toml",
        models[i - 1].model.parent_path().string(), models[i].model.parent_path().string(), models[i].name));
    models[i - 1].status = models[i].status = status;
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

bool ModelFolder::is_container() const { return model.filename() == kCodeFile; }

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
  if (lone) models.push_back(read_lone_model(repository, *lone, defaults));
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<fs::path> entries, list_repository(repository));
  for (const fs::path& entry : entries) {
    std::optional<ModelFolder> model = read_entry(repository, entry, defaults);
    if (model) models.push_back(*std::move(model));
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
             return fnmatch(pattern.c_str(), model.name.c_str(), 0) == 0;
           });
  };
  std::erase_if(models, [&](const ModelFolder& model) { return !matches(model); });
  return models;
}

}  // namespace foliot
