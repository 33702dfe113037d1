#include "node/repository/repository_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "foundation/config/repository_path.h"
#include "foundation/process/periodic_yield.h"
#include "models/repository/foreign_files.h"

namespace foliot {
namespace {

// A tenth of a serving thread's share, where both want all of it; how soon serving
// threads get theirs is the business of PeriodicYield.
constexpr int kRepositoryNice = 10;

// Models with files of at most so many bytes are compiled as a whole at once: that takes no
// longer than a second compilation would.
constexpr uint64_t kSmallModelBytes = uint64_t{256} << 10;

// To be called `count` times: then calls `done`, with the first failure.
std::function<void(const Status&)> after_all(size_t count, std::function<void(Status)> done) {
  struct Gathered {
    Gathered(size_t count, std::function<void(Status)> then) : done(std::move(then)), left(count) {}
    const std::function<void(Status)> done;
    Mutex mutex;
    size_t left GUARDED_BY(mutex);
    Status status GUARDED_BY(mutex);
  };
  return [gathered = std::make_shared<Gathered>(count, std::move(done))](const Status& status) {
    Status first;
    {
      const MutexLock lock(gathered->mutex);
      if (gathered->status.ok()) gathered->status = status;
      if (--gathered->left > 0) return;
      first = gathered->status;
    }
    gathered->done(first);
  };
}

Status shutting_down() { return Status::unavailable("the server is starting or shutting down; try again later"); }

}  // namespace

RepositoryService::RepositoryService(RepositoryOptions options)
    : options_(std::move(options)), converted_(cache_folder(options_.folder, options_.cache) / "converted") {}

Status RepositoryService::start(Catalog& catalog, PackageStore& packages, const std::vector<ModelFolder>& served) {
  catalog_ = &catalog;
  packages_ = &packages;
  {
    MutexLock lock(mutex_);
    running_ = true;
    for (const ModelFolder& folder : served) {
      if (folder.is_version()) versioned_[std::string(client_name(folder.name))];
    }
  }
  for (uint32_t i = 0; i <= 2 * options_.compilations; ++i) {
    FOLIOT_ASSIGN_OR_RETURN(workers_.emplace_back(),
                            Thread::start({.name = "repository", .nice = kRepositoryNice}, [this] { work(); }));
  }
  if (!options_.watch_interval) return Status();
  watch_.emplace(served);
  FOLIOT_ASSIGN_OR_RETURN(watcher_, Thread::start({.name = "watch", .nice = kRepositoryNice}, [this] { watch(); }));
  return Status();
}

void RepositoryService::attach(ModelHost& host) {
  host.set_on_progress([this] {
    {
      MutexLock lock(mutex_);
      sweep_due_ = true;
    }
    changed_.notify_one();
  });
  host.set_on_damage([this](const std::string& name) { mend(name); });
  {
    const MutexLock lock(mutex_);
    host_ = &host;
    sweep_due_ = true;
  }
  attached_.notify_all();
  changed_.notify_one();
}

ModelHost* RepositoryService::host() {
  MutexLock lock(mutex_);
  attached_.wait(mutex_, [this]() REQUIRES(mutex_) { return host_ != nullptr || !running_; });
  return running_ ? host_ : nullptr;
}

void RepositoryService::stop() {
  std::deque<Job> waiting;
  {
    MutexLock lock(mutex_);
    running_ = false;
    waiting.swap(jobs_);
  }
  changed_.notify_all();
  stopped_.notify_all();
  attached_.notify_all();
  for (Job& job : waiting) job.done(shutting_down());
  watcher_.join();
  for (Thread& worker : workers_) worker.join();
  ModelHost* host = nullptr;
  {
    const MutexLock lock(mutex_);
    host = std::exchange(host_, nullptr);
  }
  if (host != nullptr) {
    host->set_on_progress({});
    host->set_on_damage({});
    host->abandon();
  }
}

bool RepositoryService::is_to_be_unloaded(const std::string& name) {
  const MutexLock lock(mutex_);
  return std::ranges::any_of(jobs_, [&](const Job& job) { return job.kind == Job::Kind::kUnload && job.name == name; });
}

bool RepositoryService::is_running() {
  MutexLock lock(mutex_);
  return running_;
}

void RepositoryService::load(const std::string& name, std::function<void(Status)> done) {
  enqueue({.kind = Job::Kind::kLoad, .name = name, .done = std::move(done)});
}

void RepositoryService::unload(const std::string& name, std::function<void(Status)> done) {
  const Catalog::EntryPtr found = catalog_ == nullptr ? nullptr : catalog_->find(name);
  if (found != nullptr && found->versions != nullptr) {
    const auto gathered = after_all(found->models.size(), std::move(done));
    for (const std::string& version : found->models) {
      // One that could not be served has nothing to unload.
      enqueue({.kind = Job::Kind::kUnload, .name = version, .done = [gathered](const Status& status) {
                 gathered(status.code() == StatusCode::kNotFound ? Status() : status);
               }});
    }
    return;
  }
  enqueue({.kind = Job::Kind::kUnload, .name = name, .done = std::move(done)});
}

void RepositoryService::load_folder(ModelFolder folder, std::function<void(Status)> done) {
  std::string name = folder.name;
  enqueue({.kind = Job::Kind::kLoad, .name = std::move(name), .done = std::move(done), .folder = std::move(folder)});
}

void RepositoryService::load_all(const std::vector<ModelFolder>& models, LoadWatch watch) {
  {
    const MutexLock lock(mutex_);
    load_watch_ = std::move(watch);
    for (const ModelFolder& model : models) {
      order_.add(model.name, CompileOrder::Step::kFirst);
      known_[model.name] = {model, {}};
    }
  }
  changed_.notify_all();
}

void RepositoryService::enqueue(Job job) {
  MutexLock lock(mutex_);
  Status refusal;
  if (!running_) {
    refusal = shutting_down();
  } else if (const Catalog::EntryPtr found = catalog_->find(job.name);
             found != nullptr && found->role != EntryRole::kModel) {
    refusal = Status::invalid_argument(
        fmt::format("'{}' is {} {}, which is served while its models are; load or unload these", job.name,
                    found->role == EntryRole::kApplication ? "an" : "a", to_string(found->role)));
  } else if (jobs_.size() >= kJobsMax) {
    refusal =
        Status::unavailable(fmt::format("{} loads and unloads are waiting already; try again later", jobs_.size()));
  }
  if (!refusal.ok()) {
    lock.unlock();  // the client may ask again at once
    return job.done(refusal);
  }
  jobs_.push_back(std::move(job));
  lock.unlock();
  changed_.notify_one();
}

std::optional<RepositoryService::Job> RepositoryService::take_job() {
  std::optional<Job> job = take_asked_job();
  if (!job) job = take_own_job();
  if (!job) return std::nullopt;
  busy_.insert(job->name);
  if (uint32_t* count = count_of(job->kind)) ++*count;
  return job;
}

// nullptr: of what takes models out of service there may be any number.
uint32_t* RepositoryService::count_of(Job::Kind kind) {
  if (kind == Job::Kind::kUnload || kind == Job::Kind::kMend) return nullptr;
  return kind == Job::Kind::kLoad ? &loading_ : &completing_;
}

// The first of those that clients, or the watch, ask for that may begin: no other change of
// its model is under way or before it, and there is a compiler for it. It takes the place of
// what this service would do with the model.
std::optional<RepositoryService::Job> RepositoryService::take_asked_job() {
  std::set<std::string> earlier = busy_;
  for (auto job = jobs_.begin(); job != jobs_.end(); ++job) {
    const bool must_wait = job->kind == Job::Kind::kLoad && loading_ == options_.compilations;
    if (!earlier.insert(job->name).second || must_wait) continue;
    Job taken = std::move(*job);
    jobs_.erase(job);
    known_.erase(taken.name);
    if (order_.remove(taken.name) == CompileOrder::Step::kFirst) {
      taken.done = [this, kind = taken.kind, name = taken.name, done = std::move(taken.done)](const Status& status) {
        load_watch_.done(name, kind == Job::Kind::kLoad ? status : Status::unavailable("it was unloaded"));
        done(status);
      };
    }
    return taken;
  }
  return std::nullopt;
}

std::optional<RepositoryService::Job> RepositoryService::take_own_job() {
  const bool first = order_.waits(CompileOrder::Step::kFirst);
  if ((first ? loading_ : completing_) == options_.compilations) return std::nullopt;
  for (const std::string& name : catalog_->take_asked()) order_.ask_for(name);
  const std::optional<CompileOrder::Next> next = order_.take();
  if (!next) return std::nullopt;
  const std::string& name = next->model;
  Known known = std::move(known_.extract(name).mapped());
  Job job{.kind = first ? Job::Kind::kLoad : Job::Kind::kComplete,
          .name = name,
          .folder = std::move(known.folder),
          .signature = std::move(known.signature)};
  if (!first) return job;
  job.done = [this, name](const Status& status) { load_watch_.done(name, status); };
  job.progress = [this, name](std::string_view step, double share) { load_watch_.progress(name, step, share); };
  return job;
}

void RepositoryService::work() {
  MutexLock lock(mutex_);
  while (running_) {
    if (std::exchange(sweep_due_, false)) {
      lock.unlock();
      sweep();
      lock.lock();
    }
    if (std::optional<Job> job = take_job()) {
      lock.unlock();
      const std::string name = job->name;
      const Job::Kind kind = job->kind;
      carry_out(*std::move(job));
      lock.lock();
      busy_.erase(name);
      if (uint32_t* count = count_of(kind)) --*count;
      sweep_due_ = host_ != nullptr;  // a model may leave that has no lease
      changed_.notify_all();
    } else if (running_ && !sweep_due_) {
      changed_.wait(mutex_);
    }
  }
}

void RepositoryService::sweep() {
  const PeriodicYield courtesy;
  ModelHost* const models = host();
  const MutexLock hosting(hosting_);
  if (models != nullptr) models->sweep();
}

void RepositoryService::carry_out(Job job) {
  const PeriodicYield courtesy;
  if (job.kind == Job::Kind::kUnload) return unload_now(std::move(job));
  if (job.kind == Job::Kind::kMend) return mend_now(job);
  if (job.kind == Job::Kind::kComplete) return complete_now(job);
  if (!job.folder && !take_folder(job)) return;
  Loaded loaded = load_now(job);
  if (loaded.incomplete) {
    const MutexLock lock(mutex_);
    order_.add(job.name, CompileOrder::Step::kWhole);
    known_[job.name] = *std::move(loaded.incomplete);
  }
  job.done(loaded.status);
}

// The model of this name, or its versions.
Result<std::vector<ModelFolder>> RepositoryService::find_folders(const std::string& name) const {
  FOLIOT_ASSIGN_OR_RETURN(std::vector<ModelFolder> folders,
                          scan_repository(options_.folder, options_.defaults, options_.models, options_.cache));
  const auto found = std::ranges::find(folders, name, &ModelFolder::name);
  if (found != folders.end()) return std::vector{*found};
  std::erase_if(folders, [&](const ModelFolder& folder) { return client_name(folder.name) != name; });
  if (!folders.empty()) return folders;
  return Status::not_found(fmt::format("there is no model '{}' in {}", name, options_.folder.string()));
}

// Looks for the model that is to be loaded. False: the job is done, or its versions are loaded in its place.
bool RepositoryService::take_folder(Job& job) {
  constexpr size_t kNameBytesMax = 255;
  Result<std::vector<ModelFolder>> folders =
      job.name.size() <= kNameBytesMax
          ? find_folders(job.name)
          : Status::invalid_argument(
                fmt::format("a model's name of {} bytes; at most {} are allowed", job.name.size(), kNameBytesMax));
  if (!folders.ok()) return job.done(folders.status()), false;
  if (folders->front().name != job.name) return load_versions(job.name, *folders, std::move(job.done)), false;
  job.folder = std::move(folders->front());
  uint64_t number = 0;
  {
    const MutexLock lock(mutex_);
    const auto versions = versioned_.find(job.name);
    if (versions == versioned_.end()) return true;
    number = ++versions->second.asked;
  }
  if (job.folder->status.ok()) options_.on_one_version(job.name);
  job.done = [this, number, name = job.name, done = std::move(job.done)](const Status& status) {
    versions_loaded(name, number, {name}, status);
    done(status);
  };
  return true;
}

void RepositoryService::load_versions(const std::string& name, const std::vector<ModelFolder>& folders,
                                      std::function<void(Status)> done) {
  uint64_t number = 0;
  {
    const MutexLock lock(mutex_);
    number = ++versioned_[name].asked;
  }
  std::set<std::string> kept;
  for (const ModelFolder& folder : folders) kept.insert(folder.name);
  const auto is_ok = [](const ModelFolder& folder) { return folder.status.ok(); };
  if (std::ranges::all_of(folders, is_ok)) options_.on_rules(name, folders.front().rules);
  const auto gathered = after_all(
      folders.size(), [this, number, name, kept = std::move(kept), done = std::move(done)](const Status& status) {
        versions_loaded(name, number, kept, status);
        done(status);
      });
  for (const ModelFolder& folder : folders) load_folder(folder, gathered);
}

// An older load that ends later unloads nothing that the newest wants; and while a newer one is under way, that one
// will.
void RepositoryService::versions_loaded(const std::string& name, uint64_t number, const std::set<std::string>& kept,
                                        const Status& status) {
  std::set<std::string> served;
  {
    const MutexLock lock(mutex_);
    Versions& versions = versioned_[name];
    if (status.ok() && number > versions.settled) {
      versions.settled = number;
      versions.served = kept;
    }
    if (versions.settled != versions.asked) return;
    served = versions.served;
  }
  unload_others(name, served);
}

// What has been served under this name and is not any more, as before another choice of versions.
void RepositoryService::unload_others(const std::string& name, const std::set<std::string>& kept) {
  std::set<std::string> others;
  for (const auto& [other, entry] : catalog_->snapshot()) {
    if (client_name(other) == name && entry->role == EntryRole::kModel && !kept.contains(other)) others.insert(other);
  }
  for (const std::string& other : others) {
    enqueue({.kind = Job::Kind::kUnload, .name = other, .done = [this, name, other](const Status& status) {
               // It was never served; its entry only said why. The name itself is that of the versions.
               if (status.code() == StatusCode::kNotFound && other != name) catalog_->remove(other);
             }});
  }
}

RepositoryService::Loaded RepositoryService::load_now(const Job& job) {
  const std::string& name = job.name;
  const ModelFolder* const folder = &*job.folder;
  const Catalog::EntryPtr found = catalog_->find(name);
  const bool served = found != nullptr && found->state == ModelState::kReady;
  // An earlier version goes on until this one is ready, or failed.
  const bool loading = found != nullptr && found->state == ModelState::kLoading;
  if (!served) {
    catalog_->put({name, folder->version, ModelState::kLoading, loading ? found->reason : std::string(), nullptr});
  }
  const CompileWatch watch{.progress = job.progress, .cancelled = [this] { return !is_running(); }};
  Loaded loaded = folder->status.ok() ? load_found(*folder, served, watch) : Loaded{folder->status};
  if (loaded.status.ok()) return loaded;
  const std::string& why = loaded.status.message();
  CatalogEntry entry = served ? *found : CatalogEntry{name, folder->version};
  entry.reason = served ? fmt::format("version {} was not taken into service: {}", folder->version, why) : why;
  catalog_->put(std::move(entry));
  return loaded;
}

// What is served already is replaced by what can do as much.
RepositoryService::Loaded RepositoryService::load_found(const ModelFolder& folder, bool served,
                                                        const CompileWatch& watch) {
  if (folder.is_container()) return {load_container(folder, watch)};
  if (served || model_files_bytes(folder) <= kSmallModelBytes) return {load_whole(folder, watch)};
  const auto compiled = packages_->find(folder.model, folder.config.compile);
  if (!compiled.ok()) return {compiled.status()};
  if (compiled->has_value()) return {serve(folder, **compiled)};
  Known incomplete{folder, signature_of(folder)};
  const Result<Package> first = packages_->get_first(folder.model, folder.config.compile, watch);
  if (!first.ok()) return {first.status()};
  if (const Status status = add(folder, *first); !status.ok()) return {status};
  return {Status(), std::move(incomplete)};
}

Status RepositoryService::load_whole(const ModelFolder& folder, const CompileWatch& watch) {
  FOLIOT_ASSIGN_OR_RETURN(const Package package, packages_->get(folder.model, folder.config.compile, watch));
  return serve(folder, package);
}

// The file of a framework is compiled, or else is served by its library, which answers the same.
Status RepositoryService::load_container(const ModelFolder& folder, const CompileWatch& watch) {
  if (!folder.is_convertible()) return start_container(folder, watch);
  const Status status = load_converted(folder, watch);
  if (status.ok() || (watch.cancelled && watch.cancelled())) return status;
  FOLIOT_RETURN_IF_ERROR(start_container(folder, watch));
  options_.on_note(
      fmt::format("model '{}' runs in a container and is not compiled: {}", folder.name, status.message()));
  return Status();
}

Status RepositoryService::load_converted(const ModelFolder& folder, const CompileWatch& watch) {
  ModelHost* const models = host();
  if (models == nullptr) return shutting_down();
  if (models->containers() == nullptr) return Status::unimplemented("no containers are served here");
  FOLIOT_ASSIGN_OR_RETURN(const ConvertedModels::Converted converted,
                          converted_.get(folder, *models->containers(), watch.cancelled));
  CompileOptions options = folder.config.compile;
  options.owns_folder = true;
  FOLIOT_ASSIGN_OR_RETURN(const Package package, packages_->get(converted.model, options, watch));
  FOLIOT_RETURN_IF_ERROR(check_interface(*package.program, converted));
  {
    const MutexLock hosting(hosting_);
    FOLIOT_RETURN_IF_ERROR(models->add(folder, package, converted.inputs.front().labels));
  }
  if (!converted.note.empty()) options_.on_note(fmt::format("model '{}': {}", folder.name, converted.note));
  for (const std::string& note : notes_of_foreign_settings(folder)) {
    options_.on_note(fmt::format("model '{}': {}", folder.name, note));
  }
  return Status();
}

Status RepositoryService::start_container(const ModelFolder& folder, const CompileWatch& watch) {
  ModelHost* const models = host();
  if (models == nullptr) return shutting_down();
  FOLIOT_ASSIGN_OR_RETURN(std::unique_ptr<ContainerModel> container, models->start_container(folder, watch.cancelled));
  if (container == nullptr) return Status();
  for (const std::string& note : notes_of_foreign_settings(folder)) {
    options_.on_note(fmt::format("model '{}': {}", folder.name, note));
  }
  const MutexLock hosting(hosting_);
  return models->add(std::move(container));
}

Status RepositoryService::add(const ModelFolder& folder, const Package& package) {
  ModelHost* const models = host();
  if (models == nullptr) return shutting_down();
  const MutexLock hosting(hosting_);
  return models->add(folder, package);
}

Status RepositoryService::serve(const ModelFolder& folder, const Package& package) {
  FOLIOT_RETURN_IF_ERROR(add(folder, package));
  for (const auto& notes : {package.program->notes, notes_of_foreign_settings(folder)})
    for (const std::string& note : notes) options_.on_note(fmt::format("model '{}': {}", folder.name, note));
  return Status();
}

// The whole of a model of which the first batch size is served. What has changed since is
// left to what asks for it.
void RepositoryService::complete_now(const Job& job) {
  if (signature_of(*job.folder) != job.signature) return;
  const auto given_up = [&] { return !is_running() || is_to_be_unloaded(job.name); };
  const Result<Package> package =
      packages_->get(job.folder->model, job.folder->config.compile, {.progress = {}, .cancelled = given_up});
  if (given_up()) return;
  const Status status = package.ok() ? serve(*job.folder, *package) : package.status();
  if (status.ok() || given_up()) return;
  const std::string why = fmt::format("served with its smallest batch size alone: {}", status.message());
  options_.on_failure(fmt::format("model '{}' is {}", job.name, why));
  const Catalog::EntryPtr found = catalog_->find(job.name);
  if (found == nullptr || found->state != ModelState::kReady) return;
  CatalogEntry entry = *found;
  entry.reason = why;
  catalog_->put(std::move(entry));
}

void RepositoryService::unload_now(Job job) {
  const auto done = std::make_shared<std::function<void(Status)>>(std::move(job.done));
  ModelHost* const models = host();
  if (models == nullptr) return (*done)(shutting_down());
  const Status status = models->remove(job.name, [this, done, name = job.name](const Status& gone) {
    if (gone.ok()) unloaded(name);
    (*done)(gone);
  });
  if (status.ok()) return;
  const Catalog::EntryPtr found = catalog_->find(job.name);
  if (found == nullptr || found->state != ModelState::kLoading) return (*done)(status);
  // It was waiting to be loaded.
  catalog_->put({job.name, found->version, ModelState::kUnloading, {}, nullptr, false});
  unloaded(job.name);
  (*done)(Status());
}

// One for each model that is served and damaged: beyond the limit of what clients ask for, too.
void RepositoryService::mend(const std::string& name) {
  {
    const MutexLock lock(mutex_);
    if (!running_) return;
    jobs_.push_back({.kind = Job::Kind::kMend, .name = name, .done = [](const Status&) {}});
  }
  changed_.notify_one();
}

// Nothing is left to do where another package has taken its place meanwhile.
void RepositoryService::mend_now(const Job& job) {
  ModelHost* const models = host();
  if (models == nullptr) return;
  std::optional<ModelFolder> folder;
  {
    const MutexLock hosting(hosting_);
    folder = models->withdraw_damaged(job.name);
  }
  if (!folder) return;
  const Catalog::EntryPtr shown = catalog_->find(job.name);
  options_.on_failure(fmt::format("model '{}': {}", job.name, shown == nullptr ? "it is damaged" : shown->reason));
  load_folder(*std::move(folder), [this, name = job.name](const Status& status) {
    if (!status.ok()) options_.on_failure(fmt::format("model '{}' was not compiled again: {}", name, status.message()));
  });
}

// Keeps an entry only of what could be loaded again.
void RepositoryService::unloaded(const std::string& name) {
  const Catalog::EntryPtr found = catalog_->find(name);
  if (found == nullptr || found->state != ModelState::kUnloading) return;
  const auto folders = find_folders(name);
  if (folders.ok() && folders->front().name == name) {
    catalog_->put({.name = name,
                   .version = found->version,
                   .state = ModelState::kUnavailable,
                   .reason = "unloaded",
                   .info = nullptr,
                   .wanted = false});
  } else {
    catalog_->remove(name);
  }
}

void RepositoryService::watch() {
  const Duration interval = *options_.watch_interval;
  while (true) {
    {
      MutexLock lock(mutex_);
      if (stopped_.wait_for(mutex_, interval, [this]() REQUIRES(mutex_) { return !running_; })) return;
      for (const std::string& name : std::exchange(failed_, {})) watch_->report_again(name);
    }
    // A repository that cannot be read now has lost no models.
    if (const auto folders = scan_repository(options_.folder, options_.defaults, options_.models, options_.cache);
        folders.ok()) {
      heed(watch_->look(*folders), *folders);
    }
  }
}

// The versions of a model change together, so that none leaves before what takes its place is there.
void RepositoryService::heed(const RepositoryWatch::Changes& changes, const std::vector<ModelFolder>& folders) {
  std::set<std::string_view> present;
  for (const ModelFolder& folder : folders) present.insert(client_name(folder.name));
  std::map<std::string, std::string> loads;  // by the name that clients call, one of the changes
  std::vector<std::string> unloads;
  for (const std::string& name : changes.load) loads.try_emplace(std::string(client_name(name)), name);
  for (const std::string& name : changes.unload) {
    if (present.contains(client_name(name))) {
      loads.try_emplace(std::string(client_name(name)), name);
    } else {
      unloads.push_back(name);
    }
  }
  for (const auto& [name, change] : loads) {
    load(name, [this, name = name, change = change](const Status& status) {
      if (status.ok()) return;
      options_.on_failure(fmt::format("model '{}' was not loaded: {}", name, status.message()));
      MutexLock lock(mutex_);
      if (status.code() == StatusCode::kUnavailable) failed_.insert(change);
    });
  }
  for (const std::string& name : unloads) {
    unload(name, [this, name](const Status& status) {
      if (status.ok()) return;
      // It was never served; its entry only said why.
      if (status.code() == StatusCode::kNotFound) catalog_->remove(name);
    });
  }
}

}  // namespace foliot
