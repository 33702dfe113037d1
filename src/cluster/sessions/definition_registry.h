// DefinitionRegistry: what a cluster serves of one kind of thing that a file of a repository defines under a
// name, out of models: pipelines or tasks (decisions 0121, 0205, 0234). Workers offer these files. What one defines is
// served once all workers that offer its name offer the same, and the models that it needs are served; whenever
// one of these changes it is made again, as another one with an id of its own, which is never used again. While some
// workers have another file, as when it changes on one after the other, what was served before stays as long as one
// of them offers it.
//
// With its last worker lost, what one defines stays as long as its models do (cluster/sessions/model_registry.h): its
// requests are refused as those of the models are. Other workers of the kind that offered it, those that are there and
// the first to join, have kReturn to offer it; then it is dropped.
//
// One that retires is no longer shown to clients, and answers those that asked before they were notified; then it
// leaves the controller.
//
// A state machine without time or links of its own: calls are what has happened, and decide()
// and take_retired() return what is to be done.
#ifndef FOLIOT_CLUSTER_SESSIONS_DEFINITION_REGISTRY_H_
#define FOLIOT_CLUSTER_SESSIONS_DEFINITION_REGISTRY_H_

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "answer/pipelines/resolve.h"
#include "cluster/sessions/model_registry.h"
#include "cluster/transport/message.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/core/model_info.h"
#include "foundation/core/version_table.h"

namespace foliot {

// Lets the highest of several versions of a model answer to the model's name, too.
inline void name_highest_versions(ModelsByName& models) {
  std::map<std::string, std::shared_ptr<const ModelInfo>> highest;
  for (const auto& [name, model] : models) {
    const std::string_view client = client_name(name);
    if (name != versioned_name(client, model->version)) continue;
    auto& best = highest[std::string(client)];
    if (best == nullptr || parse_version(best->version) < parse_version(model->version)) best = model;
  }
  for (auto& [name, model] : highest) models.try_emplace(name, std::move(model));
}

// `Kind` has, as static members and types (cluster/sessions/pipeline_registry.h):
//   Message, Definition     as they are on the wire; list(message): all of its definitions
//   Id, Info                as the controller knows it; info_of(model_info)
//   Spec, parse(definition) what the file says, or why it is broken; equal(spec, spec): it says the same
//   missing(spec, models)   which models it lacks, for people; empty: none
//   can_serve(spec, models) with the models that there are
//   is_made_of(info, spec, models), models_of(info)
//   make(spec, models, id)  what clients call, made of the models that there are
template <typename Kind>
class DefinitionRegistry {
 public:
  // What else has this name: "a pipeline"; empty: nothing.
  using NameTaken = std::function<std::string_view(const std::string& name)>;
  using WorkerId = ModelRegistry::WorkerId;
  using Message = typename Kind::Message;
  using Id = typename Kind::Id;

  // For so long after its registration a worker's first offers may be on their way.
  static constexpr Duration kReturn = ModelRegistry::kNotificationTime;

  void join(WorkerId worker, const std::string& kind, TimePoint now);
  // REQUIRES of what follows: the worker has joined and is not lost.
  // All that it offers from now on.
  void offer(WorkerId worker, const Message& message);
  void lose(WorkerId worker, TimePoint now);
  // Offers have changed since decide(), or what waited for a worker does so no longer.
  bool changed(TimePoint now) const { return changed_ || now >= next_drop(); }

  struct Decisions {
    std::vector<std::shared_ptr<const typename Kind::Info>> added;  // to the controller
    std::map<std::string, std::string> lacking;                     // as lacking(), those with a reason that is new
    bool news = false;                                              // for clients
  };
  // `models`: those that are served. What has the name of a model, or one of `taken`, is not served.
  Decisions decide(const ModelsByName& models, TimePoint now, const NameTaken& taken = {});
  // Those that leave the controller now.
  std::vector<Id> take_retired(TimePoint now);
  // When changed() or take_retired() have something new though nothing happens before.
  TimePoint next() const;

  Message served() const;
  bool serves(const std::string& name) const { return served_.contains(name); }
  // By name, why it is not served, or what it is served without.
  const std::map<std::string, std::string>& lacking() const { return lacking_; }

  // Whether a request for one that has this model is not answered.
  bool uses(ModelId model) const;
  // Requests for one, and their answers. Returns the models that it is made of; nullptr: there is no such one.
  const std::vector<ModelId>* on_request(Id id) { return count(id, 1); }
  const std::vector<ModelId>* on_answer(Id id) { return count(id, -1); }

 private:
  using Definition = typename Kind::Definition;
  using Spec = typename Kind::Spec;
  struct Offer {
    Definition file;
    Spec spec;
  };
  struct Worker {
    std::string kind;                     // of its devices
    std::map<std::string, Offer> offers;  // by name
  };
  // What a lost worker offered last, while no other worker offers it.
  struct Orphan {
    Offer offer;
    std::string kind;                                // of that worker
    TimePoint until = TimePoint::infinite_future();  // a worker of that kind is there: when it is dropped
  };
  struct Entry {
    Offer offer;
    std::shared_ptr<const ModelInfo> info;
    std::vector<ModelId> models;
    uint64_t in_flight = 0;
    bool retiring = false;
    TimePoint since;  // retiring
  };
  bool is_offered(const std::string& name) const;
  TimePoint next_drop() const;
  // Those that a worker offers, that no worker brought back, or whose models have gone.
  void drop_orphans(const ModelsByName& models, TimePoint now);
  // The one that is to be served; nullptr: none. With a reason where workers do not agree on it.
  const Offer* offer_of(const std::string& name, std::string& reason) const;
  std::string serve(const std::string& name, const ModelsByName& models, std::string_view taken, Decisions& decisions,
                    TimePoint now);
  void retire(const std::string& name, Decisions& decisions, TimePoint now);
  const std::vector<ModelId>* count(Id id, int64_t change);

  std::map<WorkerId, Worker> workers_;
  std::map<std::string, Orphan> orphans_;  // by name
  std::map<Id, Entry> entries_;
  std::map<std::string, Id> served_;            // by name
  std::map<std::string, std::string> lacking_;  // reasons by name
  uint32_t last_id_ = 0;
  bool changed_ = false;
};

// ---- Details ----

template <typename Kind>
void DefinitionRegistry<Kind>::join(WorkerId worker, const std::string& kind, TimePoint now) {
  workers_[worker].kind = kind;
  for (auto& [name, orphan] : orphans_) {
    if (orphan.kind == kind) orphan.until = std::min(orphan.until, now + kReturn);
  }
}

template <typename Kind>
void DefinitionRegistry<Kind>::lose(WorkerId worker, TimePoint now) {
  const auto lost = workers_.extract(worker);
  if (!lost || lost.mapped().offers.empty()) return;
  const std::string& kind = lost.mapped().kind;
  const bool has_others = std::ranges::any_of(workers_, [&](const auto& other) { return other.second.kind == kind; });
  const TimePoint until = has_others ? now + kReturn : TimePoint::infinite_future();
  for (auto& [name, offer] : lost.mapped().offers) {
    if (served_.contains(name) && !is_offered(name)) orphans_[name] = {std::move(offer), kind, until};
  }
  changed_ = true;
}

template <typename Kind>
bool DefinitionRegistry<Kind>::is_offered(const std::string& name) const {
  return std::ranges::any_of(workers_, [&](const auto& worker) { return worker.second.offers.contains(name); });
}

template <typename Kind>
TimePoint DefinitionRegistry<Kind>::next_drop() const {
  TimePoint next = TimePoint::infinite_future();
  for (const auto& [name, orphan] : orphans_) next = std::min(next, orphan.until);
  return next;
}

template <typename Kind>
void DefinitionRegistry<Kind>::drop_orphans(const ModelsByName& models, TimePoint now) {
  std::erase_if(orphans_, [&](const auto& each) {
    const auto& [name, orphan] = each;
    return is_offered(name) || now >= orphan.until || !Kind::can_serve(orphan.offer.spec, models);
  });
}

template <typename Kind>
void DefinitionRegistry<Kind>::offer(WorkerId worker, const Message& message) {
  std::map<std::string, Offer>& own = workers_.at(worker).offers;
  own.clear();
  for (const Definition& definition : Kind::list(message)) {
    own.emplace(definition.name, Offer{definition, Kind::parse(definition)});
  }
  changed_ = true;
}

template <typename Kind>
const typename DefinitionRegistry<Kind>::Offer* DefinitionRegistry<Kind>::offer_of(const std::string& name,
                                                                                   std::string& reason) const {
  if (const auto orphan = orphans_.find(name); orphan != orphans_.end()) return &orphan->second.offer;
  const auto shown = served_.find(name);
  const Offer* const served = shown == served_.end() ? nullptr : &entries_.at(shown->second).offer;
  const Offer* first = nullptr;
  bool is_served_offered = false;
  for (const auto& [number, worker] : workers_) {
    const auto found = worker.offers.find(name);
    if (found == worker.offers.end()) continue;
    const Offer& offer = found->second;
    if (!offer.spec.status.ok()) {
      reason = offer.spec.status.message();
      continue;
    }
    if (first == nullptr) first = &offer;
    if (!Kind::equal(first->spec, offer.spec)) {
      reason = fmt::format("the workers have different files {}; copy the same file to all", offer.spec.file);
    }
    is_served_offered = is_served_offered || (served != nullptr && Kind::equal(served->spec, offer.spec));
  }
  if (reason.empty()) return first;
  return is_served_offered ? served : nullptr;
}

template <typename Kind>
typename DefinitionRegistry<Kind>::Decisions DefinitionRegistry<Kind>::decide(const ModelsByName& models, TimePoint now,
                                                                              const NameTaken& taken) {
  changed_ = false;
  drop_orphans(models, now);
  Decisions decisions;
  std::set<std::string> names;
  for (const auto& [name, orphan] : orphans_) names.insert(name);
  for (const auto& [number, worker] : workers_) {
    for (const auto& [name, offer] : worker.offers) names.insert(name);
  }
  const std::map<std::string, Id> before = served_;
  for (const auto& [name, id] : before) {
    if (!names.contains(name)) retire(name, decisions, now);
  }
  std::map<std::string, std::string> lacking;
  for (const std::string& name : names) {
    const std::string_view other = models.contains(name) ? "a model" : taken ? taken(name) : std::string_view();
    std::string reason = serve(name, models, other, decisions, now);
    if (reason.empty()) continue;
    const auto known = lacking_.find(name);
    if (known == lacking_.end() || known->second != reason) decisions.lacking.emplace(name, reason);
    lacking.emplace(name, std::move(reason));
  }
  decisions.news = decisions.news || lacking != lacking_;
  lacking_ = std::move(lacking);
  return decisions;
}

// Empty: it is served with all that it should have; else what it lacks.
template <typename Kind>
std::string DefinitionRegistry<Kind>::serve(const std::string& name, const ModelsByName& models, std::string_view taken,
                                            Decisions& decisions, TimePoint now) {
  std::string reason;
  const Offer* offer = offer_of(name, reason);
  if (offer != nullptr && !taken.empty()) {
    offer = nullptr;
    reason = fmt::format("{} has its name; rename the folder of one of them", taken);
  }
  if (offer != nullptr && reason.empty()) reason = Kind::missing(offer->spec, models);
  const bool can_serve = offer != nullptr && Kind::can_serve(offer->spec, models);
  if (const auto shown = served_.find(name); can_serve && shown != served_.end()) {
    const Entry& entry = entries_.at(shown->second);
    if (Kind::equal(entry.offer.spec, offer->spec) && Kind::is_made_of(*entry.info, offer->spec, models)) return reason;
  }
  retire(name, decisions, now);
  if (!can_serve) return reason;
  const Id id(last_id_ + 1);
  const Result<std::shared_ptr<const ModelInfo>> made = Kind::make(offer->spec, models, id);
  if (!made.ok()) return std::string(made.status().message());
  ++last_id_;
  entries_[id] = {.offer = *offer, .info = *made, .models = Kind::models_of(**made)};
  served_[name] = id;
  decisions.added.push_back(Kind::info_of(**made));
  decisions.news = true;
  return reason;
}

template <typename Kind>
void DefinitionRegistry<Kind>::retire(const std::string& name, Decisions& decisions, TimePoint now) {
  const auto shown = served_.find(name);
  if (shown == served_.end()) return;
  Entry& entry = entries_.at(shown->second);
  entry.retiring = true;
  entry.since = now;
  served_.erase(shown);
  decisions.news = true;
}

template <typename Kind>
std::vector<typename Kind::Id> DefinitionRegistry<Kind>::take_retired(TimePoint now) {
  std::vector<Id> retired;
  for (const auto& [id, entry] : entries_) {
    if (entry.retiring && entry.in_flight == 0 && now >= entry.since + ModelRegistry::kNotificationTime)
      retired.push_back(id);
  }
  for (const Id id : retired) entries_.erase(id);
  return retired;
}

template <typename Kind>
TimePoint DefinitionRegistry<Kind>::next() const {
  TimePoint next = next_drop();
  for (const auto& [id, entry] : entries_) {
    if (entry.retiring && entry.in_flight == 0) next = std::min(next, entry.since + ModelRegistry::kNotificationTime);
  }
  return next;
}

template <typename Kind>
typename Kind::Message DefinitionRegistry<Kind>::served() const {
  Message served;
  auto& list = Kind::list(served);
  for (const auto& [name, id] : served_) {
    if (list.size() == kDefinitionsMax) break;
    list.push_back(entries_.at(id).offer.file);
    list.back().id = id;
  }
  return served;
}

template <typename Kind>
bool DefinitionRegistry<Kind>::uses(ModelId model) const {
  return std::ranges::any_of(entries_, [model](const auto& entry) {
    return entry.second.in_flight > 0 && std::ranges::count(entry.second.models, model) > 0;
  });
}

template <typename Kind>
const std::vector<ModelId>* DefinitionRegistry<Kind>::count(Id id, int64_t change) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return nullptr;
  found->second.in_flight += static_cast<uint64_t>(change);
  return &found->second.models;
}

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_SESSIONS_DEFINITION_REGISTRY_H_
