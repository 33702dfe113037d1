#include "node/repository/repository_variants.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <future>
#include <iterator>
#include <system_error>
#include <utility>

#include "answer/tasks/task_file.h"
#include "answer/tasks/task_interface.h"
#include "foundation/base/error_text.h"
#include "foundation/core/task_info.h"
#include "foundation/platform/descriptor.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPublishing = "publishing";

Status file_failure(const fs::path& file, std::string_view what, int error) {
  std::string text = fmt::format("{}: cannot {}: {}", file.string(), what, error_text(error));
  if (error == ENOSPC || error == EDQUOT) return Status::resource_exhausted(text + "; free space on its disk");
  return Status::internal(std::move(text));
}

Status sync_path(const fs::path& path, int flags) {
  const Descriptor opened(::open(path.c_str(), flags | O_CLOEXEC));
  if (opened.is_open() && ::fsync(opened.number()) == 0) return Status();
  return file_failure(path, "be synced", errno);
}

// The whole file or none of it is there, however the process ends.
Status write_lasting(const fs::path& file, const std::string& text) {
  const fs::path made = file.string() + ".new";
  std::ofstream out(made, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out) return file_failure(file, "be written", errno);
  FOLIOT_RETURN_IF_ERROR(sync_path(made, O_WRONLY));
  if (::rename(made.c_str(), file.c_str()) != 0) return file_failure(file, "be named", errno);
  return sync_path(file.parent_path(), O_RDONLY | O_DIRECTORY);
}

Status move_new(const fs::path& from, const fs::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return Status();
  if (errno == EEXIST) {
    return Status::already_exists(fmt::format("{} exists since the job was submitted; move it away", to.string()));
  }
  return file_failure(to, "be made", errno);
}

std::string read_whole(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

bool has_variants(const TaskSpec& task, const TaskAddition& addition) {
  return std::ranges::all_of(addition.variants, [&](const MeasuredVariant& variant) {
    return std::ranges::find(task.variants, variant.model, &VariantSpec::model) != task.variants.end();
  });
}

}  // namespace

// ---- What may be added

Status RepositoryVariants::check_new(const std::string& name) const {
  const Catalog::EntryPtr found = parts_.catalog.find(name);
  if (found != nullptr) {
    return Status::already_exists(
        fmt::format("there is a {} '{}' already; give another 'name'", to_string(found->role), name));
  }
  if (!is_there(folder_of(name))) return Status();
  return Status::already_exists(fmt::format("{} exists; give another 'name'", folder_of(name).string()));
}

Status RepositoryVariants::check(const TaskAddition& addition) const {
  const Catalog::EntryPtr task = parts_.catalog.find(addition.task);
  if (task != nullptr && task->role != EntryRole::kTask) {
    return Status::already_exists(
        fmt::format("'{}' is a {} and no task; give another 'task'", addition.task, to_string(task->role)));
  }
  const bool is_new = !is_there(task_file(addition.task));
  if (is_new && is_there(folder_of(addition.task))) {
    return Status::already_exists(
        fmt::format("{} exists and is no task; give another 'task'", folder_of(addition.task).string()));
  }
  if (!is_new && (addition.accuracy || !addition.default_slo.empty())) {
    return Status::invalid_argument(fmt::format("'{}' is of a new task, and task '{}' exists: its task.toml says it",
                                                addition.accuracy ? "accuracy" : "default_slo", addition.task));
  }
  for (const MeasuredVariant& variant : addition.variants) FOLIOT_RETURN_IF_ERROR(check_new(variant.model));
  // As accurate as can be: what else would be wrong is wrong with the file, or with their number.
  TaskAddition best = addition;
  for (MeasuredVariant& variant : best.variants) variant.accuracy = 1;
  return task_text(best).status();
}

Result<std::string> RepositoryVariants::task_text(const TaskAddition& addition) const {
  const fs::path file = task_file(addition.task);
  std::string text = read_whole(file);
  if (text.empty()) {
    if (!addition.default_slo.empty()) text += fmt::format("default_slo = \"{}\"\n", addition.default_slo);
    if (addition.accuracy) text += fmt::format("accuracy = {:.6f}\n", *addition.accuracy);
  } else if (text.back() != '\n') {
    text += '\n';
  }
  if (!addition.remark.empty()) text += fmt::format("\n# {}\n", addition.remark);
  for (const MeasuredVariant& variant : addition.variants) {
    text += fmt::format("\n[[variant]]\nmodel = \"{}\"\naccuracy = {:.6f}\n", variant.model, variant.accuracy);
  }
  const auto read_accuracies = [&](const std::string& other) {
    return parse_accuracies(read_whole(file.parent_path() / other), other);
  };
  const TaskSpec spec = parse_task(addition.task, file.string(), text, read_accuracies);
  if (!spec.status.ok()) return spec.status;
  return text;
}

// ---- While they are measured

Status RepositoryVariants::try_out(const std::string& model, const fs::path& folder, const JobContext& context) {
  ModelFolder found;
  found.name = model;
  found.folder = folder;
  found.model = folder / "model.onnx";
  FOLIOT_ASSIGN_OR_RETURN(found.config, read_model_config(folder / "model.toml", parts_.defaults));
  // Whole, whatever its size, and kept: it is served from the draft now, and from the repository later.
  FOLIOT_ASSIGN_OR_RETURN(const Package package,
                          parts_.packages.get(found.model, found.config.compile,
                                              {.progress = {}, .cancelled = [&context] { return context.is_over(); }}));
  if (context.is_over()) return Status();
  std::promise<Status> loaded;
  parts_.models.load_folder(std::move(found), [&loaded](const Status& status) { loaded.set_value(status); });
  return loaded.get_future().get();
}

void RepositoryVariants::withdraw(const std::string& model) {
  if (is_there(folder_of(model)) || parts_.catalog.find(model) == nullptr) return;  // not from a draft
  std::promise<Status> gone;
  parts_.models.unload(model, [&gone](const Status& status) { gone.set_value(status); });
  // It was never served: its entry only says why.
  if (gone.get_future().get().code() == StatusCode::kNotFound) parts_.catalog.remove(model);
}

// ---- Publication

Status RepositoryVariants::publish(const fs::path& draft, const TaskAddition& addition) {
  const MutexLock lock(publishing_);
  const TaskSpec there = read_task(addition.task, task_file(addition.task));
  if (!has_variants(there, addition)) {
    FOLIOT_ASSIGN_OR_RETURN(const std::string text, task_text(addition));
    FOLIOT_RETURN_IF_ERROR(check_interfaces(parse_task(addition.task, task_file(addition.task).string(), text,
                                                       [](const std::string&) { return Accuracies(); })));
    if (const Status moved = move_all(draft, addition, text); !moved.ok()) {
      take_back(draft);
      return moved;
    }
  }
  parts_.read_tasks();
  return Status();
}

// With those of the task that are ready: these are, and so decide.
Status RepositoryVariants::check_interfaces(const TaskSpec& task) const {
  std::vector<TaskVariant> ready;
  for (const VariantSpec& variant : task.variants) {
    const Catalog::EntryPtr found = parts_.catalog.find(variant.model);
    if (found != nullptr && found->info != nullptr && found->role == EntryRole::kModel) {
      ready.push_back({found->info, variant.accuracy});
    }
  }
  if (ready.empty()) return Status::unavailable("no variant is ready; submit it again");
  return describe_task(task, std::move(ready), ServedTaskId(0)).status();
}

Status RepositoryVariants::move_all(const fs::path& draft, const TaskAddition& addition, const std::string& text) {
  std::string names;
  for (const MeasuredVariant& variant : addition.variants) names += variant.model + "\n";
  FOLIOT_RETURN_IF_ERROR(write_lasting(draft / kPublishing, names));
  for (const MeasuredVariant& variant : addition.variants) {
    // Not there: an earlier call moved it.
    if (!is_there(draft / variant.model)) continue;
    for (const char* file : {"model.onnx", "model.toml"}) {
      FOLIOT_RETURN_IF_ERROR(sync_path(draft / variant.model / file, O_RDONLY));
    }
    FOLIOT_RETURN_IF_ERROR(move_new(draft / variant.model, folder_of(variant.model)));
  }
  FOLIOT_RETURN_IF_ERROR(sync_path(parts_.repository, O_RDONLY | O_DIRECTORY));
  std::error_code error;
  fs::create_directories(draft / "task", error);
  if (error) return file_failure(draft / "task", "be made", error.value());
  FOLIOT_RETURN_IF_ERROR(write_lasting(draft / "task" / "task.toml", text));
  return move_task(draft, addition.task);
}

Status RepositoryVariants::move_task(const fs::path& draft, const std::string& task) const {
  if (!is_there(folder_of(task))) {
    FOLIOT_RETURN_IF_ERROR(move_new(draft / "task", folder_of(task)));
  } else if (::rename((draft / "task" / "task.toml").c_str(), task_file(task).c_str()) != 0) {
    return file_failure(task_file(task), "be replaced", errno);
  }
  // Both have their names now; that these last is no more than what an unsynced disk loses.
  [[maybe_unused]] const Status synced = sync_path(folder_of(task), O_RDONLY | O_DIRECTORY);
  [[maybe_unused]] const Status listed = sync_path(parts_.repository, O_RDONLY | O_DIRECTORY);
  return Status();
}

void RepositoryVariants::take_back(const fs::path& draft) {
  std::ifstream names(draft / kPublishing);
  for (std::string name; std::getline(names, name);) {
    if (!is_there(draft / name)) ::rename(folder_of(name).c_str(), (draft / name).c_str());
  }
}

}  // namespace foliot
