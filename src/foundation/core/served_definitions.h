// ServedDefinitions: shows in the catalog what files of a repository define under a name, out of models
// (pipelines, tasks), and registers it with the part that answers its calls (the sink), while it can be served.
//
// It is made when its models are ready, and made again when one of them changes, as another one with an id of
// its own: new calls get that one, while those under way keep the old one, and by it the old models. With
// its last call the old one leaves the sink, and then the old models leave.
//
// Definitions may be added, removed and replaced while calls are under way: another definition is served
// once it can be, and until then the one before.
//
// Threading: any thread; changes are carried out by the thread that changes the catalog, one
// at a time. The sink is called by whichever thread ends the last call.
#ifndef FOLIOT_FOUNDATION_CORE_SERVED_DEFINITIONS_H_
#define FOLIOT_FOUNDATION_CORE_SERVED_DEFINITIONS_H_

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foundation/base/mutex.h"
#include "foundation/core/catalog.h"

namespace foliot {

// `Kind` has, as static members and types (answer/tasks/served_tasks.h):
//   Spec, Sink              a definition, with name, content and status; what answers the calls
//   kRole, kFile            of its catalog entries; the name of the file, for people
//   check(spec, names)      breaks a definition (its status) that does not go with those of these names
//   is_same(spec, spec)     it says the same
//   model_names(spec)       of its models
//   describe(spec, catalog, shown, id, entry)  fills in models, wanted and reason; and info: `shown` where that is
//                           right, or another one with this id, unless it cannot be served, and then the state
//   add(sink, info), remove(sink, info)
template <typename Kind>
class ServedDefinitions {
 public:
  using Spec = typename Kind::Spec;
  using Sink = typename Kind::Sink;

  // The catalog outlives this. The sink is not called after this is gone.
  ServedDefinitions(Catalog& catalog, Sink& sink) : catalog_(catalog) { registration_->sink = &sink; }
  ~ServedDefinitions();
  ServedDefinitions(const ServedDefinitions&) = delete;
  ServedDefinitions& operator=(const ServedDefinitions&) = delete;

  // Once: shows these from now on; broken ones as unavailable. What else has the same name
  // takes the place of a definition.
  void serve(std::vector<Spec> specs);
  // After serve(): these are all from now on. Returns what of these is not served as it is
  // defined now, and why, as sentences.
  std::vector<std::string> replace(std::vector<Spec> specs);

 private:
  // Outlives this: the last call ends the registration of what it called.
  struct Registration {
    SharedMutex mutex;             // exclusive: of what changes the pointer
    Sink* sink GUARDED_BY(mutex);  // null: this is gone
    template <typename Call>
    void call(Call call) {
      const ReaderLock lock(mutex);
      if (sink != nullptr) call(*sink);
    }
  };

  struct Served {
    Spec spec;
    std::optional<Spec> next{};  // its definition, once that can be served
  };

  void on_change(const std::string& name, const Catalog::EntryPtr& entry);
  // Returns the names of those that are to be looked at.
  std::set<std::string> take(std::vector<Spec> specs, const std::set<std::string>& names) REQUIRES(mutex_);
  std::set<std::string> forget_all_but(const std::set<std::string>& names) REQUIRES(mutex_);
  void index_models() REQUIRES(mutex_);
  void update(Served& served) REQUIRES(mutex_);
  // What the catalog is to show; with the info of `shown` if that is right. `shown` null: it is made anew.
  CatalogEntry entry_of(const Spec& spec, const Catalog::EntryPtr& shown) REQUIRES(mutex_);
  std::string note_of(const std::string& name) const REQUIRES(mutex_);
  std::shared_ptr<const ModelInfo> registered(const std::shared_ptr<const ModelInfo>& info) const;
  static std::set<std::string> names_of(const std::vector<Spec>& specs);

  Catalog& catalog_;
  const std::shared_ptr<Registration> registration_ = std::make_shared<Registration>();
  Mutex mutex_;  // of the thread that changes entries of this role
  std::map<std::string, Served, std::less<>> served_ GUARDED_BY(mutex_);
  std::map<std::string, std::vector<Served*>, std::less<>> by_model_ GUARDED_BY(mutex_);
  uint32_t last_id_ GUARDED_BY(mutex_) = 0;
  Catalog::Watch watch_;  // uses all of the above
};

// ---- Details ----

template <typename Kind>
ServedDefinitions<Kind>::~ServedDefinitions() {
  watch_.reset();
  const MutexLock lock(registration_->mutex);
  registration_->sink = nullptr;
}

template <typename Kind>
std::set<std::string> ServedDefinitions<Kind>::names_of(const std::vector<Spec>& specs) {
  std::set<std::string> names;
  for (const Spec& spec : specs) names.insert(spec.name);
  return names;
}

template <typename Kind>
void ServedDefinitions<Kind>::serve(std::vector<Spec> specs) {
  watch_ = catalog_.watch([this](const std::string& name, const Catalog::EntryPtr& entry) { on_change(name, entry); });
  const MutexLock lock(mutex_);
  const std::set<std::string> names = names_of(specs);
  for (const std::string& name : take(std::move(specs), names)) update(served_.at(name));
}

template <typename Kind>
std::vector<std::string> ServedDefinitions<Kind>::replace(std::vector<Spec> specs) {
  std::vector<std::string> notes;
  std::set<std::string> removed;
  {
    const MutexLock lock(mutex_);
    const std::set<std::string> names = names_of(specs);
    removed = forget_all_but(names);
    for (const std::string& name : take(std::move(specs), names)) {
      update(served_.at(name));
      if (std::string note = note_of(name); !note.empty()) notes.push_back(std::move(note));
    }
  }
  // Each of these notifies the watches of the catalog, this one among them.
  for (const std::string& name : removed) {
    const Catalog::EntryPtr shown = catalog_.find(name);
    if (shown != nullptr && shown->role == Kind::kRole) catalog_.remove(name);
  }
  return notes;
}

template <typename Kind>
std::set<std::string> ServedDefinitions<Kind>::forget_all_but(const std::set<std::string>& names) {
  std::set<std::string> removed;
  std::erase_if(served_, [&](const auto& known) {
    if (!names.contains(known.first)) removed.insert(known.first);
    return !names.contains(known.first);
  });
  return removed;
}

template <typename Kind>
std::set<std::string> ServedDefinitions<Kind>::take(std::vector<Spec> specs, const std::set<std::string>& names) {
  std::set<std::string> changed;
  for (Spec& spec : specs) {
    Kind::check(spec, names);
    const auto [known, added] = served_.try_emplace(spec.name, Served{.spec = spec});
    Served& served = known->second;
    const bool is_current = Kind::is_same(served.spec, spec);
    if (!added && (served.next ? Kind::is_same(*served.next, spec) : is_current)) continue;
    changed.insert(spec.name);
    served.next.reset();
    if (!is_current) served.next = std::move(spec);
  }
  index_models();
  return changed;
}

// Why it is not served as it is defined now; empty: it is.
template <typename Kind>
std::string ServedDefinitions<Kind>::note_of(const std::string& name) const {
  const Served& served = served_.at(name);
  if (!served.next && served.spec.status.ok()) return {};
  const Catalog::EntryPtr shown = catalog_.find(name);
  return fmt::format("{} '{}': {}", to_string(Kind::kRole), name, shown == nullptr ? "" : shown->reason);
}

template <typename Kind>
void ServedDefinitions<Kind>::index_models() {
  by_model_.clear();
  for (auto& [name, served] : served_) {
    std::set<std::string> models = Kind::model_names(served.spec);
    if (served.next) models.merge(Kind::model_names(*served.next));
    for (const std::string& model : models) by_model_[model].push_back(&served);
  }
}

template <typename Kind>
void ServedDefinitions<Kind>::on_change(const std::string& name, const Catalog::EntryPtr& entry) {
  // Entries of applications are put by a thread that holds their lock, and those of this role here.
  if (entry != nullptr && entry->role != EntryRole::kModel) return;
  const MutexLock lock(mutex_);
  if (const auto own = served_.find(name); own != served_.end()) update(own->second);
  const auto changed = by_model_.find(name);
  if (changed == by_model_.end()) return;
  for (Served* served : std::vector<Served*>(changed->second)) update(*served);
}

template <typename Kind>
void ServedDefinitions<Kind>::update(Served& served) {
  const Catalog::EntryPtr shown = catalog_.find(served.spec.name);
  if (shown != nullptr && shown->role != Kind::kRole) return;
  std::optional<CatalogEntry> entry;
  std::string waiting;
  if (served.next) {
    entry = entry_of(*served.next, nullptr);
    if (entry->state == ModelState::kReady) {
      served.spec = *std::exchange(served.next, std::nullopt);
      index_models();
    } else {
      waiting = fmt::format("{} as it is now is not taken yet: {}", Kind::kFile, entry->reason);
      entry.reset();
    }
  }
  if (!entry) entry = entry_of(served.spec, shown);
  if (!waiting.empty()) entry->reason = entry->reason.empty() ? waiting : waiting + "; " + entry->reason;
  const bool is_shown = shown != nullptr && shown->state == entry->state && shown->reason == entry->reason &&
                        shown->info == entry->info && shown->wanted == entry->wanted;
  if (!is_shown) catalog_.put(*std::move(entry));
}

template <typename Kind>
CatalogEntry ServedDefinitions<Kind>::entry_of(const Spec& spec, const Catalog::EntryPtr& shown) {
  CatalogEntry entry{.name = spec.name, .version = "1", .reason = {}, .info = {}, .role = Kind::kRole};
  if (!spec.status.ok()) {
    entry.reason = spec.status.message();
    return entry;
  }
  const std::shared_ptr<const ModelInfo> before = shown == nullptr ? nullptr : shown->info;
  Kind::describe(spec, catalog_, before, last_id_ + 1, entry);
  if (entry.info == nullptr) return entry;
  entry.state = ModelState::kReady;
  if (entry.info == before) return entry;
  ++last_id_;
  entry.info = registered(entry.info);
  return entry;
}

template <typename Kind>
std::shared_ptr<const ModelInfo> ServedDefinitions<Kind>::registered(
    const std::shared_ptr<const ModelInfo>& info) const {
  registration_->call([&](Sink& sink) { Kind::add(sink, *info); });
  return {info.get(), [info, registration = registration_](const ModelInfo*) {
            registration->call([&](Sink& sink) { Kind::remove(sink, *info); });
          }};
}

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_SERVED_DEFINITIONS_H_
