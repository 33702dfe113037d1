#include "cluster/sessions/model_registry.h"

#include <fmt/format.h>

#include <algorithm>

#include "foundation/base/check.h"

namespace foliot {
namespace {

Status check_kind(const std::string& kind, const ModelInfo& model) {
  if (model.runnables.size() == 1 && model.runnables.front().kind == kind) return Status();
  return Status::invalid_argument(fmt::format("model '{}' is for devices of kind {}; the worker's are of kind {}",
                                              model.name, model.kinds(), kind));
}

constexpr uint32_t kIdsMax = 2 * ModelRegistry::kModelsMax;

// Of kinds that only one of them has nothing can differ.
bool same_model(const ModelInfo& a, const ModelInfo& b) {
  if (a.name != b.name || a.version != b.version || a.content != b.content || a.buckets.size() != b.buckets.size()) {
    return false;
  }
  return std::ranges::all_of(a.runnables, [&](const Runnable& own) {
    const Runnable* const other = b.find(own.kind);
    return other == nullptr || (own.batch_sizes == other->batch_sizes && own.pages == other->pages);
  });
}

}  // namespace

// ---- What happens ----

Status ModelRegistry::check(const std::string& kind, const std::vector<ModelInfo>& models) const {
  if (models.empty() || models.size() > kModelsMax) {
    return Status::invalid_argument(
        fmt::format("a worker registers 1 to {} models, not {}", kModelsMax, models.size()));
  }
  if (!retiring_.empty()) return Status::unavailable("models are changing; register again");
  std::multimap<std::string_view, const ModelInfo*> brought;
  for (const ModelInfo& model : models) {
    FOLIOT_RETURN_IF_ERROR(check_kind(kind, model));
    const auto [begin, end] = brought.equal_range(model.name);
    if (std::any_of(begin, end, [&](const auto& other) { return same_model(*other.second, model); })) {
      return Status::invalid_argument(fmt::format("model '{}' is listed twice", model.name));
    }
    brought.emplace(model.name, &model);
  }
  if (workers_.empty()) return Status();
  for (const auto& [name, id] : served_) {
    const ModelInfo& served = *entries_[id.value()].model;
    if (served.find(kind) == nullptr || !has_worker(id)) continue;
    const auto [begin, end] = brought.equal_range(name);
    if (std::any_of(begin, end, [&](const auto& other) { return same_model(*other.second, served); })) continue;
    return Status::invalid_argument(
        begin == end ? fmt::format("all workers of kind {} must bring the same models: '{}' is missing", kind, name)
                     : fmt::format("all workers of kind {} must bring the same models: '{}' is not what is served, "
                                   "version {}: its files are others, or one of both has not compiled it for all batch "
                                   "sizes yet; copy the same files to all",
                                   kind, name, served.version));
  }
  return Status();
}

ModelRegistry::Joined ModelRegistry::join(WorkerId id, const std::string& kind, const std::vector<ModelInfo>& models,
                                          TimePoint now) {
  const bool first = workers_.empty();
  const bool first_of_kind =
      std::ranges::none_of(workers_, [&](const auto& other) { return other.second.kind == kind; });
  const auto [place, is_new] = workers_.try_emplace(id);
  FOLIOT_CHECK(is_new);
  Worker& worker = place->second;
  worker.kind = kind;
  for (const ModelInfo& model : models) add_offer(worker, std::make_shared<const ModelInfo>(model));
  for (auto& [own, offered] : worker.offers) offered.preference = models.size() + 1 - offered.preference;
  if (first_of_kind) drop_orphans(worker, first, now);
  if (first) serve_first(models, now);
  changed_ = true;

  Joined joined;
  for (const ModelInfo& model : models) {
    const auto known = served_.find(model.name);
    const bool is_served = known != served_.end() && same_model(model, *entry(known->second).model) &&
                           entry(known->second).model->find(kind) != nullptr;
    if (is_served) name(worker, model.id, known->second);
    joined.names.push_back(is_served ? known->second : kUnnamed);
  }
  joined.decisions = std::exchange(pending_, {});
  return joined;
}

// What all workers that had it were lost with, and the first worker of its kind does not bring.
void ModelRegistry::drop_orphans(const Worker& worker, bool of_all_kinds, TimePoint now) {
  std::vector<ModelId> dropped;
  for (const auto& [name, id] : served_) {
    const ModelInfo& model = *entry(id).model;
    if ((!of_all_kinds && model.find(worker.kind) == nullptr) || has_worker(id)) continue;
    if (find_unnamed(worker, model) == nullptr) dropped.push_back(id);
  }
  for (const ModelId id : dropped) {
    retire(id, now);
    remove(id);
  }
}

// There is no other worker to agree with.
void ModelRegistry::serve_first(const std::vector<ModelInfo>& models, TimePoint now) {
  for (const ModelInfo& model : models) {
    if (!served_.contains(model.name) && has_id(now)) serve(model, now);
  }
}

Status ModelRegistry::offer(WorkerId id, ModelInfo model) {
  Worker& worker = workers_.at(id);
  FOLIOT_RETURN_IF_ERROR(check_kind(worker.kind, model));
  const auto known = worker.offers.find(model.id);
  if (known != worker.offers.end()) {
    if (!known->second.released) {
      return Status::invalid_argument(fmt::format("it offers two models as {}", model.id.value()));
    }
    worker.offers.erase(known);
  }
  const auto served = served_.find(model.name);
  const bool has_served = served != served_.end() && same_model(model, *entry(served->second).model) &&
                          worker.named.contains(served->second) && !worker.withdrawn.contains(served->second);
  if (has_served || find_unnamed(worker, model) != nullptr) {
    return Status::invalid_argument(fmt::format("it offers model '{}' twice", model.name));
  }
  if (worker.offers.size() >= kModelsMax) {
    return Status::resource_exhausted(fmt::format("the limit of {} models of a worker is reached", kModelsMax));
  }
  add_offer(worker, std::make_shared<const ModelInfo>(std::move(model)));
  changed_ = true;
  return Status();
}

Status ModelRegistry::withdraw(WorkerId id, ModelId own) {
  Worker& worker = workers_.at(id);
  const auto found = worker.offers.find(own);
  if (found == worker.offers.end() || found->second.withdrawn) {
    return Status::invalid_argument(fmt::format("it withdraws model {}, which it does not offer", own.value()));
  }
  Offered& offered = found->second;
  if (offered.name != kUnnamed) {
    offered.withdrawn = true;
    worker.withdrawn.insert(offered.name);
    changed_ = true;
    return Status();
  }
  if (!offered.released) {
    erase_unnamed(worker, own, offered);
    pending_.releases.push_back({id, Release{own}});
  }
  worker.offers.erase(found);
  return Status();
}

void ModelRegistry::leave(WorkerId worker) {
  workers_.at(worker).leaving = true;
  changed_ = true;
}

void ModelRegistry::lose(WorkerId worker) {
  workers_.erase(worker);
  // What it withdrew in this turn.
  std::erase_if(pending_.releases, [&](const auto& release) { return release.first == worker; });
  changed_ = true;
}

void ModelRegistry::on_request(ModelId model) {
  if (model.value() < entries_.size()) ++entry(model).in_flight;
}

void ModelRegistry::on_answer(ModelId model) {
  if (model.value() >= entries_.size()) return;
  FOLIOT_CHECK(entry(model).in_flight > 0);
  --entry(model).in_flight;
}

// ---- What is to be done ----

ModelRegistry::Decisions ModelRegistry::decide(TimePoint now) {
  if (std::exchange(changed_, false)) {
    promote_candidates(now);
    retire_withdrawn(now);
  }
  for (const ModelId id : retiring_) {
    if (entry(id).state == State::kRetiring && now >= end_of(entry(id))) remove(id);
  }
  return std::exchange(pending_, {});
}

TimePoint ModelRegistry::next() const {
  TimePoint next = TimePoint::infinite_future();
  for (const ModelId id : retiring_) {
    const Entry& retiring = entries_[id.value()];
    if (retiring.state == State::kRetiring) next = std::min(next, end_of(retiring));
  }
  if (changed_ && !free_.empty()) next = std::min(next, entries_[free_.front().value()].since + kIdRest);
  return next;
}

std::vector<ModelId> ModelRegistry::removing() const {
  std::vector<ModelId> removing;
  std::ranges::copy_if(retiring_, std::back_inserter(removing),
                       [&](ModelId id) { return entries_[id.value()].state == State::kRemoving; });
  return removing;
}

ModelRegistry::Gone ModelRegistry::gone(ModelId id, TimePoint now) {
  FOLIOT_CHECK(entry(id).state == State::kRemoving);
  Gone gone{.model = std::exchange(entry(id), {.since = now}).model, .releases = {}};
  std::erase(retiring_, id);
  free_.push_back(id);
  for (auto& [number, worker] : workers_) {
    const auto named = worker.named.find(id);
    if (named == worker.named.end()) continue;
    const ModelId own = named->second;
    gone.releases.push_back({number, Release{own}});
    worker.named.erase(named);
    if (worker.withdrawn.erase(id) > 0) {
      worker.offers.erase(own);
    } else {
      worker.offers.at(own) = {.released = true};
    }
  }
  return gone;
}

bool ModelRegistry::serves(ModelId id) const {
  return id.value() < entries_.size() && entries_[id.value()].state == State::kServed;
}

// All workers of a kind must offer a candidate, so those of the first worker of each kind
// are all that there can be.
void ModelRegistry::promote_candidates(TimePoint now) {
  std::vector<Candidate> candidates;
  for (const Worker* const first : first_of_kinds()) {
    const auto begin = static_cast<std::ptrdiff_t>(candidates.size());
    for (const auto& [name, own] : first->unnamed) candidates.push_back({first, &first->offers.at(own)});
    std::ranges::sort(candidates.begin() + begin, candidates.end(), std::greater(),
                      [](const Candidate& candidate) { return candidate.offered->preference; });
  }
  for (const auto& [worker, offered] : candidates) {
    if (offered->name != kUnnamed) continue;  // with that of another kind
    const std::shared_ptr<const ModelInfo> model = offered->model;
    const auto served = served_.find(model->name);
    if (served != served_.end() && entry(served->second).model->find(worker->kind) == nullptr &&
        same_model(*model, *entry(served->second).model)) {
      extend(served->second, *worker, *model);
      continue;
    }
    if (!all_staying([&](const Worker& other) { return agrees(other, *model); })) continue;
    if (!has_id(now)) {
      changed_ = true;
      return;
    }
    const ModelId id = serve(of_all_kinds(*model), now);
    for (auto& [number, other] : workers_) name_unnamed(number, other, *model, id);
  }
}

// A kind of device whose workers all have what others serve runs it, too.
void ModelRegistry::extend(ModelId id, const Worker& first, const ModelInfo& model) {
  const std::string kind = first.kind;
  const bool all = all_staying([&](const Worker& other) {
    return other.kind != kind || find_unnamed(other, model) != nullptr || other.named.contains(id);
  });
  if (!all) return;
  if (entry(id).model->find(kind) == nullptr) {
    auto extended = std::make_shared<ModelInfo>(*entry(id).model);
    extended->runnables.push_back(model.only());
    entry(id).model = extended;
    pending_.extended.push_back(extended);
    pending_.news = true;
  }
  for (auto& [number, other] : workers_) {
    if (other.kind == kind) name_unnamed(number, other, model, id);
  }
}

void ModelRegistry::name_unnamed(WorkerId number, Worker& worker, const ModelInfo& model, ModelId id) {
  const Offered* const offered = find_unnamed(worker, model);
  if (offered == nullptr) return;
  const ModelId own = offered->model->id;
  name(worker, own, id);
  pending_.namings.push_back({number, Naming{own, id}});
}

// The model as the first worker of each kind that offers it runs it.
ModelInfo ModelRegistry::of_all_kinds(const ModelInfo& model) const {
  ModelInfo all = model;
  all.runnables.clear();
  for (const Worker* const first : first_of_kinds()) {
    const Offered* const offered = find_unnamed(*first, model);
    if (offered != nullptr) all.runnables.push_back(offered->model->only());
  }
  return all;
}

void ModelRegistry::retire_withdrawn(TimePoint now) {
  std::set<ModelId> withdrawn;
  for (const Worker* const first : first_of_kinds()) withdrawn.insert(first->withdrawn.begin(), first->withdrawn.end());
  for (const ModelId id : withdrawn) {
    const auto gives_up = [&](const Worker& worker) {
      return !worker.named.contains(id) || worker.withdrawn.contains(id);
    };
    if (serves(id) && all_staying(gives_up)) retire(id, now);
  }
}

// Whether the model may be served as far as this worker is concerned: it prefers it, or its
// kind has neither that model nor another version.
bool ModelRegistry::agrees(const Worker& worker, const ModelInfo& model) const {
  if (find_unnamed(worker, model) != nullptr) return prefers(worker, model);
  const bool of_its_kind = std::ranges::any_of(workers_, [&](const auto& other) {
    return !other.second.leaving && other.second.kind == worker.kind && find_unnamed(other.second, model) != nullptr;
  });
  if (of_its_kind) return false;
  const auto served = served_.find(model.name);
  return served == served_.end() || !worker.named.contains(served->second) || worker.withdrawn.contains(served->second);
}

bool ModelRegistry::prefers(const Worker& worker, const ModelInfo& model) const {
  const Offered* const offered = find_unnamed(worker, model);
  if (offered == nullptr) return false;
  const auto served = served_.find(model.name);
  if (served == served_.end()) return true;
  const auto named = worker.named.find(served->second);
  if (named == worker.named.end()) return true;
  const Offered& other = worker.offers.at(named->second);
  return other.withdrawn || other.preference < offered->preference;
}

ModelId ModelRegistry::serve(const ModelInfo& model, TimePoint now) {
  Addition addition;
  if (const auto earlier = served_.find(model.name); earlier != served_.end()) {
    addition.replaced = entry(earlier->second).model->version;
    retire(earlier->second, now);
  }
  auto info = std::make_shared<ModelInfo>(model);
  info->id = take_id(now);
  entry(info->id) = {.state = State::kServed, .model = info, .since = now, .in_flight = 0};
  served_.emplace(info->name, info->id);
  addition.model = info;
  pending_.added.push_back(std::move(addition));
  pending_.news = true;
  return info->id;
}

void ModelRegistry::retire(ModelId id, TimePoint now) {
  Entry& retiring = entry(id);
  served_.erase(retiring.model->name);
  retiring.state = State::kRetiring;
  retiring.since = now;
  retiring_.push_back(id);
  pending_.news = true;
}

TimePoint ModelRegistry::end_of(const Entry& retiring) {
  return retiring.since + (retiring.in_flight == 0 ? kNotificationTime : kRetirementMax);
}

void ModelRegistry::remove(ModelId id) {
  entry(id).state = State::kRemoving;
  pending_.removed.push_back(id);
}

// ---- Offers ----

std::vector<const ModelRegistry::Worker*> ModelRegistry::first_of_kinds() const {
  std::vector<const Worker*> first;
  for (const auto& [number, worker] : workers_) {
    if (!worker.leaving && !std::ranges::count(first, worker.kind, &Worker::kind)) first.push_back(&worker);
  }
  return first;
}

bool ModelRegistry::has_worker(ModelId id) const {
  return std::ranges::any_of(workers_, [&](const auto& worker) { return worker.second.named.contains(id); });
}

template <typename Condition>
bool ModelRegistry::all_staying(Condition condition) const {
  return std::ranges::all_of(workers_,
                             [&](const auto& worker) { return worker.second.leaving || condition(worker.second); });
}

void ModelRegistry::add_offer(Worker& worker, std::shared_ptr<const ModelInfo> model) {
  const ModelId own = model->id;
  worker.unnamed.emplace(model->name, own);
  const Offered offered{.model = std::move(model), .preference = ++worker.preferences};
  FOLIOT_CHECK(worker.offers.emplace(own, offered).second);
}

const ModelRegistry::Offered* ModelRegistry::find_unnamed(const Worker& worker, const ModelInfo& model) {
  const auto [begin, end] = worker.unnamed.equal_range(model.name);
  for (auto unnamed = begin; unnamed != end; ++unnamed) {
    const Offered& offered = worker.offers.at(unnamed->second);
    if (same_model(*offered.model, model)) return &offered;
  }
  return nullptr;
}

void ModelRegistry::erase_unnamed(Worker& worker, ModelId own, const Offered& offered) {
  const auto [begin, end] = worker.unnamed.equal_range(offered.model->name);
  worker.unnamed.erase(std::find_if(begin, end, [&](const auto& unnamed) { return unnamed.second == own; }));
}

void ModelRegistry::name(Worker& worker, ModelId own, ModelId name) {
  Offered& offered = worker.offers.at(own);
  erase_unnamed(worker, own, offered);
  offered.model = entry(name).model;  // one for all workers
  offered.name = name;
  worker.named.emplace(name, own);
}

// ---- Ids ----

bool ModelRegistry::rested(TimePoint now) const {
  return !free_.empty() && now - entries_[free_.front().value()].since >= kIdRest;
}

bool ModelRegistry::has_id(TimePoint now) const { return rested(now) || entries_.size() < kIdsMax; }

ModelId ModelRegistry::take_id(TimePoint now) {
  if (!rested(now)) {
    entries_.emplace_back();
    return ModelId(static_cast<uint32_t>(entries_.size() - 1));
  }
  const ModelId id = free_.front();
  free_.pop_front();
  return id;
}

}  // namespace foliot
