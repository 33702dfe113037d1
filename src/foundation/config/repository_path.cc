#include "foundation/config/repository_path.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "foundation/base/error_text.h"
#include "foundation/base/folder_listing.h"
#include "foundation/config/code_file.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWhatIsServed =
    "a .onnx file, a model.py, MLmodel or model.joblib (or the like), or a folder with a folder per model";

bool is_model_file(const fs::path& file) {
  return file.extension() == ".onnx" || file.filename() == kMlflowFile ||
         (file.stem() == "model" && is_code_file(file));
}

bool is_hidden(const fs::path& entry) { return entry.filename().string().starts_with('.'); }

Status check_readable(const fs::path& path, int how) {
  if (::access(path.c_str(), how) == 0) return Status();
  return Status::invalid_argument(
      fmt::format("'{}' cannot be read: {}; give this user the right to (chmod, chown), or run as one that has it",
                  path.string(), error_text(errno)));
}

// `file` if it is there.
Result<std::optional<fs::path>> if_there(const fs::path& file) {
  FOLIOT_ASSIGN_OR_RETURN(const bool there, leads_to_file(file));
  return there ? std::optional(file) : std::nullopt;
}

// The .onnx file of a folder that has one, and no folder; other names than model.onnx.
Result<std::optional<fs::path>> find_named_model(const fs::path& folder) {
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<fs::path> entries, list_folder(folder));
  std::vector<fs::path> graphs;
  for (const fs::path& entry : entries) {
    if (is_hidden(entry)) continue;
    const Result<bool> is_folder = leads_to_folder(entry);
    if (!is_folder.ok() || *is_folder) return std::optional<fs::path>();
    if (entry.extension() == ".onnx") graphs.push_back(entry);
  }
  if (graphs.empty()) return std::optional<fs::path>();
  if (graphs.size() == 1) return std::optional(graphs.front());
  return Status::invalid_argument(
      fmt::format("'{}' has {} .onnx files, such as {} and {}; give one of them, or make a folder for each: {}",
                  folder.string(), graphs.size(), graphs[0].filename().string(), graphs[1].filename().string(),
                  (folder / graphs[0].stem() / "model.onnx").string()));
}

Result<std::optional<fs::path>> find_in_folder(const fs::path& folder) {
  FOLIOT_RETURN_IF_ERROR(check_readable(folder, R_OK | X_OK));
  FOLIOT_ASSIGN_OR_RETURN(const auto graph, if_there(folder / "model.onnx"));
  FOLIOT_ASSIGN_OR_RETURN(const fs::path code, find_code_file(folder, {}));
  if (graph && code.filename() == kCodeFile) {
    return Status::invalid_argument(
        fmt::format("{} and {} are two models; remove one of them", graph->string(), code.string()));
  }
  if (graph) return graph;
  if (!code.empty()) return std::optional(code);
  for (const std::string_view settings : kForeignSettingsFiles) {
    FOLIOT_ASSIGN_OR_RETURN(auto file, if_there(folder / settings));
    if (file) return file;
  }
  return find_named_model(folder);
}

}  // namespace

Result<std::optional<fs::path>> find_lone_model(const fs::path& repository) {
  std::error_code error;
  const fs::file_type type = fs::status(repository, error).type();
  if (type == fs::file_type::directory) return find_in_folder(repository);
  if (type == fs::file_type::not_found) {
    return Status::not_found(fmt::format("there is no '{}'; give {}, such as {}/NAME/model.onnx", repository.string(),
                                         kWhatIsServed, repository.string()));
  }
  if (type == fs::file_type::none) {
    return Status::invalid_argument(fmt::format("'{}' cannot be looked at: {}", repository.string(), error.message()));
  }
  const fs::path suffix = repository.extension();
  const bool may_be_anything = suffix == ".txt" || suffix == ".json";
  if (type == fs::file_type::regular && is_code_file(repository) && !is_model_file(repository) && !may_be_anything) {
    return Status::invalid_argument(
        fmt::format("'{}' must be named model{}, in a folder of its own", repository.string(), suffix.string()));
  }
  if (type != fs::file_type::regular || !is_model_file(repository)) {
    return Status::invalid_argument(fmt::format("'{}' is no model; give {}", repository.string(), kWhatIsServed));
  }
  FOLIOT_RETURN_IF_ERROR(check_readable(repository, R_OK));
  return std::optional(repository);
}

Result<std::vector<fs::path>> list_repository(const fs::path& repository) {
  FOLIOT_ASSIGN_OR_RETURN(const auto lone, find_lone_model(repository));
  if (lone) return std::vector<fs::path>();
  return list_folder(repository);
}

fs::path repository_folder(const fs::path& repository) {
  std::error_code error;
  if (!fs::is_regular_file(repository, error)) return repository;
  return repository.has_parent_path() ? repository.parent_path() : fs::path(".");
}

fs::path cache_folder(const fs::path& repository, const fs::path& cache) {
  return cache.empty() ? repository_folder(repository) / ".foliot" : cache;
}

}  // namespace foliot
