#include "answer/tasks/task_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

#include "foundation/config/repository_path.h"
#include "foundation/config/toml_file.h"
#include "foundation/config/toml_reader.h"
#include "foundation/core/task_info.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTaskFile = "task.toml";

using ReadAccuracies = std::function<Result<Accuracies>(const std::string& file)>;

Status read_variant(TomlReader& reader, const Accuracies& accuracies, TaskSpec& spec) {
  VariantSpec& variant = spec.variants.emplace_back();
  reader.text("model", variant.model);
  reader.share("accuracy", variant.accuracy);
  if (variant.model.empty()) reader.fail("a variant needs a model: model = \"NAME\"");
  if (variant.model == spec.name) reader.fail("model", fmt::format("is '{}', the task itself", spec.name));
  if (!reader.has("accuracy")) {
    const auto measured = accuracies.find(variant.model);
    if (measured == accuracies.end()) {
      reader.fail(
          fmt::format("variant '{}' needs an accuracy: accuracy = 0.9, or a line in the file that 'accuracies' "
                      "names",
                      variant.model));
    } else {
      variant.accuracy = measured->second;
    }
  }
  return reader.finish();
}

Status check_variants(const TomlReader& reader, const TaskSpec& spec) {
  const auto wrong = [&](const std::string& what) { return Status::invalid_argument(reader.where() + ": " + what); };
  if (spec.variants.empty()) return wrong("a task needs variants: [[variant]] with a model and its accuracy");
  if (spec.variants.size() > kTaskVariantsMax) {
    return wrong(fmt::format("it has {} variants; at most {} are allowed", spec.variants.size(), kTaskVariantsMax));
  }
  std::set<std::string> models;
  for (const VariantSpec& variant : spec.variants) {
    if (!models.insert(variant.model).second) return wrong(fmt::format("it has variant '{}' twice", variant.model));
  }
  const auto best = std::ranges::max_element(spec.variants, {}, &VariantSpec::accuracy);
  if (best->accuracy < spec.accuracy) {
    return wrong(
        fmt::format("calls that ask for no accuracy get at least {} by 'accuracy', and no variant has that; "
                    "the nearest is '{}' with {}",
                    spec.accuracy, best->model, best->accuracy));
  }
  return Status();
}

Status read_table(const toml::table& table, const ReadAccuracies& read_accuracies, TaskSpec& spec) {
  TomlReader reader(table, spec.file);
  reader.positive("default_slo", spec.default_slo);
  reader.share("accuracy", spec.accuracy);
  reader.text("accuracies", spec.accuracies_file);
  std::vector<TomlReader> variants = reader.tables("variant");
  FOLIOT_RETURN_IF_ERROR(reader.finish());
  Accuracies accuracies;
  if (!spec.accuracies_file.empty()) {
    FOLIOT_ASSIGN_OR_RETURN(accuracies, read_accuracies(spec.accuracies_file));
  }
  for (TomlReader& variant : variants) FOLIOT_RETURN_IF_ERROR(read_variant(variant, accuracies, spec));
  FOLIOT_RETURN_IF_ERROR(check_variants(reader, spec));
  std::ranges::stable_sort(spec.variants, {}, &VariantSpec::accuracy);
  return Status();
}

Result<Accuracies> accuracies_of(const toml::table& table, const std::string& file) {
  TomlReader reader(table, file);
  Accuracies accuracies;
  for (const auto& [key, node] : table) {
    if (node.is_number()) {
      reader.share(key.str(), accuracies[std::string(key.str())]);
    } else {
      reader.fail(key.str(), "must be a number from 0 to 1");
    }
  }
  FOLIOT_RETURN_IF_ERROR(reader.finish());
  return accuracies;
}

// In the task's own folder, links included.
Result<Accuracies> read_accuracies_in(const fs::path& folder, const std::string& file) {
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  const fs::path real = fs::weakly_canonical(folder / file, error);
  const auto [end, at] = std::ranges::mismatch(root, real);
  if (error || end != root.end() || at == real.end()) {
    return Status::invalid_argument(
        fmt::format("{}: accuracies is '{}', which is not in the task's folder", (folder / kTaskFile).string(), file));
  }
  FOLIOT_ASSIGN_OR_RETURN(const toml::table table, read_toml_file(real));
  return accuracies_of(table, real.string());
}

Status check_folder(const fs::path& folder) {
  std::error_code error;
  for (const char* other : {"model.onnx", "model.py", "application.toml", "pipeline.toml", "personal.toml"}) {
    if (!fs::exists(folder / other, error)) continue;
    return Status::invalid_argument(
        fmt::format("{} has {} and {}; a task is nothing else besides: move one of them to another folder",
                    folder.string(), kTaskFile, other));
  }
  return Status();
}

}  // namespace

TaskSpec parse_task(const std::string& name, const std::string& file, std::string_view text,
                    const ReadAccuracies& read_accuracies) {
  TaskSpec spec;
  spec.name = name;
  spec.file = file;
  const Result<toml::table> table = parse_toml(text, file);
  spec.status = table.ok() ? read_table(*table, read_accuracies, spec) : table.status();
  return spec;
}

Result<Accuracies> parse_accuracies(std::string_view text, const std::string& file) {
  FOLIOT_ASSIGN_OR_RETURN(const toml::table table, parse_toml(text, file));
  return accuracies_of(table, file);
}

TaskSpec read_task(const std::string& name, const fs::path& file) {
  TaskSpec spec;
  spec.name = name;
  spec.file = file.string();
  spec.status = check_folder(file.parent_path());
  if (!spec.status.ok()) return spec;
  const Result<toml::table> table = read_toml_file(file);
  const ReadAccuracies read = [&](const std::string& other) { return read_accuracies_in(file.parent_path(), other); };
  spec.status = table.ok() ? read_table(*table, read, spec) : table.status();
  if (table.ok()) spec.content = content_hash(*table);
  return spec;
}

Result<std::vector<TaskSpec>> scan_tasks(const fs::path& repository) {
  std::vector<TaskSpec> tasks;
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<fs::path> entries, list_repository(repository));
  for (const fs::path& entry : entries) {
    const std::string name = entry.filename().string();
    const fs::path file = entry / kTaskFile;
    std::error_code ignored;
    if (name.starts_with('.') || !fs::is_regular_file(file, ignored)) continue;
    tasks.push_back(read_task(name, file));
  }
  return tasks;
}

}  // namespace foliot
