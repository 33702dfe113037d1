// PersonalModels: their versions.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <system_error>
#include <utility>

#include "answer/personal/service/personal_models.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;

constexpr const char* kChosenFile = "chosen_version";  // beside the log
// Where front ends share users, in the model's folder, which all have.
constexpr const char* kSharedChosenFile = ".chosen_version";

Status check_request(const VersionRequest& request) {
  if (!request.unknown.empty()) {
    return Status::invalid_argument(
        fmt::format("parameter '{}' is unknown: a load of a personal model has 'version', 'compare', 'take' and "
                    "'roll_back'",
                    request.unknown));
  }
  if (request.roll_back && (!request.version.empty() || !request.compare || !request.take)) {
    return Status::invalid_argument(
        "parameter 'roll_back' goes alone: it takes the version before, which is not compared; name another version "
        "by 'version' without 'roll_back'");
  }
  if (!request.take && !request.compare) {
    return Status::invalid_argument(
        "parameters 'take' and 'compare' are both false: leave 'compare' out to compare the version without taking it");
  }
  return Status();
}

}  // namespace

Result<PersonalVersion> PersonalModels::open_version(const std::filesystem::path& folder) const {
  Result<PersonalVersion> version = PersonalVersion::open(folder);
  if (version.ok() && options_.is_shared) {
    version->trained.reset();
    version->log_number = 0;
  }
  return version;
}

std::filesystem::path PersonalModels::choice_file(const Served& served) const {
  return options_.is_shared ? served.spec.folder / kSharedChosenFile : served.observations / kChosenFile;
}

std::optional<TakenVersion> PersonalModels::choice_of(const Served& served) const {
  std::optional<TakenVersion> choice = read_taken(choice_file(served));
  if (!choice) return std::nullopt;
  const Result<fs::path> newest = newest_version(served.spec.folder);
  const bool is_over = newest.ok() && version_number(newest->filename().string()) > version_number(choice->newest);
  return is_over ? std::nullopt : choice;
}

bool PersonalModels::is_chosen(const std::string& name) const {
  const Served* const served = find(name);
  return served != nullptr && served->features == nullptr && choice_of(*served).has_value();
}

std::optional<fs::path> PersonalModels::version_to_begin(Served& served) const {
  VersionNote note = read_note(served.observations / kServedFile).value_or(VersionNote());
  if (const std::optional<TakenVersion> choice = choice_of(served)) note = {choice->version, choice->before};
  {
    const MutexLock lock(versions_mutex_);
    served.before = note.before;
  }
  std::error_code ignored;
  const fs::path folder = served.spec.folder / note.served;
  if (note.served.empty() || !fs::is_directory(folder, ignored)) return std::nullopt;
  return folder;
}

// A note that is not on disk costs a comparison after a restart.
void PersonalModels::note_version(const Served& served) const {
  VersionNote note{.served = served.model->version()};
  {
    const MutexLock lock(versions_mutex_);
    note.before = served.before;
  }
  const fs::path file = served.observations / kServedFile;
  const Status status = write(note, file, file.string() + ".new");
  if (!status.ok()) report(served, std::string(status.message()));
}

Status PersonalModels::watch(Duration interval) {
  return models_.empty() ? Status() : start_watching(watcher_, interval, &PersonalModels::load_by_itself);
}

Status PersonalModels::start_watching(Thread& thread, Duration interval, Look look) {
  FOLIOT_ASSIGN_OR_RETURN(thread, Thread::start({.name = "foliot-versions", .nice = 10},
                                                [this, interval, look] { run_watch(interval, look); }));
  return Status();
}

void PersonalModels::run_watch(Duration interval, Look look) {
  MutexLock lock(mutex_);
  while (!stopping_) {
    stopped_.wait_for(mutex_, interval, [this]() REQUIRES(mutex_) { return stopping_; });
    if (stopping_) return;
    lock.unlock();
    for (const auto& [name, served] : models_) {
      if (!served->is_served || served->features != nullptr) continue;
      const Status status = (this->*look)(*served);
      if (!status.ok()) report(*served, std::string(status.message()));
    }
    lock.lock();
  }
}

Status PersonalModels::load(const std::string& name) {
  Served* const served = find(name);
  if (served == nullptr) return Status::not_found(fmt::format("unknown personal model '{}'", name));
  if (served->features != nullptr) {
    if (served->is_served) return Status();
    return Status::unavailable(
        fmt::format("personal model '{}' is served once model '{}' is", name, served->features->model()));
  }
  const MutexLock lock(load_mutex_);
  FOLIOT_RETURN_IF_ERROR(serve_again(*served));
  return load_newest(*served, true);
}

Status PersonalModels::load(const std::string& name, const VersionRequest& request) {
  FOLIOT_RETURN_IF_ERROR(check_request(request));
  if (request.is_plain()) return load(name);
  Served* const served = find(name);
  if (served == nullptr) return Status::not_found(fmt::format("unknown personal model '{}'", name));
  if (served->features != nullptr) {
    return Status::invalid_argument(
        fmt::format("the version of personal model '{}' is that of model '{}', which computes its features: load that "
                    "one",
                    name, served->features->model()));
  }
  const MutexLock lock(load_mutex_);
  FOLIOT_RETURN_IF_ERROR(serve_again(*served));
  return choose(*served, request);
}

Status PersonalModels::serve_again(Served& served) {
  if (served.model == nullptr && served.is_tried_again) FOLIOT_RETURN_IF_ERROR(serve(served));
  if (served.model != nullptr) return Status();
  return Status::unavailable(
      fmt::format("personal model '{}' could not be served when the server started: correct it, and restart the server",
                  served.spec.name));
}

Status PersonalModels::load_by_itself(Served& served) {
  const MutexLock lock(load_mutex_);
  return load_newest(served, false);
}

Status PersonalModels::load_newest(Served& served, bool again) {
  const Result<fs::path> folder = newest_version(served.spec.folder);
  if (!folder.ok()) return again ? folder.status() : Status();
  const std::string name = folder->filename().string();
  if (const std::optional<TakenVersion> choice = choice_of(served)) {
    FOLIOT_RETURN_IF_ERROR(take_chosen(served, *choice, again));
    if (!again || name == choice->version) return Status();
    return Status::invalid_argument(
        fmt::format("version {} is not taken: an operator took version {} when it was there; name it by the parameter "
                    "'version' to take it, or make a newer one",
                    name, choice->version));
  }
  if (name == served.model->version() || (!again && name == served.refused_version)) return Status();
  // What one front end has compared is for all: else each could serve another version.
  std::error_code ignored;
  const bool is_compared = options_.is_shared && fs::exists(*folder / kMadeByServer, ignored);
  return take_and_show(served, *folder,
                       is_compared ? PersonalModel::PoolCheck::kNone : PersonalModel::PoolCheck::kNotWorse);
}

Status PersonalModels::take_and_show(Served& served, const fs::path& folder, PersonalModel::PoolCheck check) {
  const std::string name = folder.filename().string();
  const Status status = take(served, folder, check);
  if (status.ok()) note_version(served);
  served.refused_version = status.ok() ? "" : name;
  const Status shown = status.with_context(fmt::format("version {} is not taken", name));
  show(served, shown.message());
  return shown;
}

Status PersonalModels::take_chosen(Served& served, const TakenVersion& choice, bool again) {
  if (choice.version == served.model->version() || (!again && choice.version == served.refused_version)) {
    return Status();
  }
  FOLIOT_RETURN_IF_ERROR(take_and_show(served, served.spec.folder / choice.version, PersonalModel::PoolCheck::kNone));
  set_before(served, choice.before);
  return Status();
}

Status PersonalModels::follow_choice(Served& served) {
  const MutexLock lock(load_mutex_);
  const std::optional<TakenVersion> choice = choice_of(served);
  return choice ? take_chosen(served, *choice, false) : Status();
}

Result<fs::path> PersonalModels::wanted_version(const Served& served, const VersionRequest& request) const {
  std::string name = request.version;
  if (request.roll_back) {
    const MutexLock lock(versions_mutex_);
    name = served.before;
    if (name.empty()) {
      return Status::not_found(fmt::format(
          "there is no version to go back to: none was served before version {}; name one by the parameter 'version'",
          served.model->version()));
    }
  }
  if (name.empty()) return newest_version(served.spec.folder);
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<fs::path> versions, version_folders(served.spec.folder));
  const auto found = std::ranges::find_if(versions, [&](const fs::path& each) { return each.filename() == name; });
  if (found != versions.end()) return *found;
  std::vector<std::string> names;
  for (const fs::path& version : versions) names.push_back(version.filename().string());
  return Status::not_found(
      fmt::format("{} has no version '{}'; it has: {}", served.spec.folder.string(), name, fmt::join(names, ", ")));
}

Status PersonalModels::choose(Served& served, const VersionRequest& request) {
  FOLIOT_ASSIGN_OR_RETURN(const fs::path folder, wanted_version(served, request));
  FOLIOT_ASSIGN_OR_RETURN(const fs::path newest, newest_version(served.spec.folder));
  const std::string name = folder.filename().string();
  const std::string current = served.model->version();
  if (!request.take) {
    if (name == current) {
      return Status::invalid_argument(
          fmt::format("version {} is served: name another one by the parameter 'version' to compare it", name));
    }
    return compare(served, folder);
  }
  if (name != current) {
    const bool compares = request.compare && !request.roll_back;
    FOLIOT_RETURN_IF_ERROR(
        take(served, folder, compares ? PersonalModel::PoolCheck::kNotWorse : PersonalModel::PoolCheck::kNone)
            .with_context(fmt::format("version {} is not taken", name)));
    served.refused_version.clear();
    show(served, "");
  }
  if (request.roll_back) {
    const MutexLock lock(versions_mutex_);
    served.before.clear();
    served.tried[current] = {.name = current, .reason = fmt::format("it was rolled back to version {}", name)};
  }
  note_version(served);
  return write_choice(served, newest.filename().string());
}

Status PersonalModels::write_choice(const Served& served, const std::string& newest) const {
  TakenVersion choice{.version = served.model->version(), .newest = newest};
  {
    const MutexLock lock(versions_mutex_);
    choice.before = served.before;
  }
  const fs::path file = choice_file(served);
  return write(choice, file, fmt::format("{}.{:x}", file.string(), options_.seed))
      .with_context(fmt::format("version {} is served, but {}", choice.version,
                                options_.is_shared ? "other front ends do not take it" : "a restart may undo it"));
}

Status PersonalModels::compare(Served& served, const fs::path& folder) {
  const Status status = take(served, folder, PersonalModel::PoolCheck::kOnly);
  const MutexLock lock(versions_mutex_);
  // That it is worse, or that too little is withheld, is what was asked for.
  return served.tried[folder.filename().string()].comparison ? Status() : status;
}

Status PersonalModels::take(Served& served, const fs::path& folder, PersonalModel::PoolCheck check) {
  const std::string current = served.model->version();
  VersionEntry tried{.name = folder.filename().string()};
  Result<PersonalVersion> version = open_version(folder);
  const uint64_t items = version.ok() ? version->items->items().size() : 0;
  const Status status =
      version.ok() ? served.model->swap(*std::move(version), check, &tried.comparison) : version.status();
  tried.reason = status.message();
  const bool is_taken = status.ok() && check != PersonalModel::PoolCheck::kOnly;
  if (is_taken) served.items = items;
  std::error_code ignored;
  const MutexLock lock(versions_mutex_);
  if (is_taken) served.before = current;
  std::erase_if(served.tried, [&](const auto& each) { return !fs::exists(served.spec.folder / each.first, ignored); });
  served.tried[tried.name] = std::move(tried);
  return status;
}

Result<VersionList> PersonalModels::versions(const std::string& name) const {
  const Served* const served = find(name);
  if (served == nullptr) return Status::not_found(fmt::format("unknown personal model '{}'", name));
  if (!served->is_served) return Status::unavailable(fmt::format("personal model '{}' is not ready", name));
  // Not of the model: stop() does not wait for this.
  const auto shown = catalog_.find(name);
  VersionList list{.served = shown == nullptr ? "" : shown->version};
  if (served->features != nullptr) {
    list.versions.push_back({.name = list.served});
    return list;
  }
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<fs::path> folders, version_folders(served->spec.folder));
  list.is_chosen = choice_of(*served).has_value();
  const MutexLock lock(versions_mutex_);
  list.before = served->before;
  std::map<std::string, VersionEntry> tried = served->tried;
  for (const fs::path& folder : folders) {
    VersionEntry& entry = tried[folder.filename().string()];
    entry.name = folder.filename().string();
    list.versions.push_back(std::move(entry));
    tried.erase(folder.filename().string());
  }
  for (auto& [tried_name, entry] : tried) list.versions.push_back(std::move(entry));
  return list;
}

void PersonalModels::set_before(Served& served, const std::string& before) {
  {
    const MutexLock lock(versions_mutex_);
    served.before = before;
  }
  note_version(served);
}

Status PersonalModels::publish(const std::string& name, const std::filesystem::path& folder) {
  Served* const served = find(name);
  FOLIOT_CHECK(served != nullptr && served->model != nullptr && options_.is_shared);
  const std::filesystem::path published = served->spec.folder / folder.filename();
  const MutexLock lock(load_mutex_);
  std::error_code error;
  if (std::filesystem::exists(published, error)) {
    return Status::internal(fmt::format("{} has been made by another process meanwhile", published.string()));
  }
  FOLIOT_RETURN_IF_ERROR(take(*served, folder, PersonalModel::PoolCheck::kNotWorse));
  std::ofstream(folder / kMadeByServer) << "\n";
  std::filesystem::rename(folder, published, error);
  if (error) {
    return Status::internal(fmt::format("version {} is served here alone, since it cannot be moved to {}: {}",
                                        folder.filename().string(), served->spec.folder.string(), error.message()));
  }
  note_version(*served);
  served->refused_version.clear();
  show(*served, "");
  // Its number may be that of a version which has left since an operator took another one.
  return choice_of(*served) ? write_choice(*served, folder.filename().string()) : Status();
}

}  // namespace foliot
