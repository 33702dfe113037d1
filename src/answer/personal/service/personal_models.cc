#include "answer/personal/service/personal_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <tuple>

#include "foundation/base/hash.h"
#include "foundation/store/rocks_user_store.h"

namespace foliot {
namespace {

// After a feature model that refused. A change of the catalog is followed at once.
constexpr Duration kRetryAfter = Duration::seconds(1);
constexpr const char* kStoreFolder = "users";  // beside the files of the log
// Of work, for a user: its weights and what a call costs in any case.
constexpr uint64_t kUnitsOfUser = 1000;

void count_duration(PersonalCounters& counters, Duration duration) {
  const int64_t microseconds = duration.nanoseconds() / 1000;
  size_t bucket = 0;
  while (bucket < PersonalCounters::kReadMicroseconds.size() &&
         microseconds > PersonalCounters::kReadMicroseconds[bucket]) {
    ++bucket;
  }
  ++counters.read_durations[bucket];
  counters.read_nanoseconds += static_cast<uint64_t>(duration.nanoseconds());
}

PersonalList to_list(const TopK& given) {
  PersonalList list{.query = given.query};
  for (const ScoredItem& place : given.places) {
    list.slots.push_back(
        {.item = place.item, .score = place.score, .is_drawn = place.is_drawn, .probability = place.probability});
  }
  return list;
}

// Beyond the range of float: its limits, which a model clips to its own.
float to_value(double value) {
  constexpr double kMost = std::numeric_limits<float>::max();
  return static_cast<float>(std::isfinite(value) ? std::clamp(value, -kMost, kMost) : value);
}

// As clients see it: a prediction for each pair.
ModelInfo info_of(const PersonalSpec& spec, const std::string& version) {
  ModelInfo info;
  info.name = spec.name;
  info.version = version;
  info.only().kind = kPersonalKind;
  info.inputs = {{"user", DataType::kUint64, {1}, {""}}, {"item", DataType::kUint64, {1}, {""}}};
  info.outputs = {{"prediction", DataType::kFloat32, {1}, {""}}};
  info.buckets = {Bucket{}};
  info.default_slo = spec.default_slo;
  return info;
}

}  // namespace

struct PersonalModels::Call {
  Call(Served& given, std::string_view name, TimePoint arrived, TimePoint until, PersonalDone on_done,
       std::shared_ptr<Tenant> tenant, uint32_t requests)
      : served(given),
        model(*given.model),
        model_name(name),
        arrival(arrived),
        deadline(until),
        done(std::move(on_done)),
        lease(std::in_place, std::move(tenant), requests) {}

  Served& served;
  PersonalModel& model;
  const std::string model_name;
  const TimePoint arrival;
  const TimePoint deadline;
  const PersonalDone done;
  std::optional<TenantLease> lease;  // until the answer is passed on
  // Of changes: records that are not on disk yet, and the first error.
  std::atomic<size_t> pending{1};
  Mutex mutex;
  Status status GUARDED_BY(mutex);
};

Status PersonalModels::open(std::vector<PersonalSpec> specs, const std::filesystem::path& observations) {
  queue_ = std::make_unique<ReadQueue>(options_.reads_max, options_.threads);
  if (!specs.empty()) {
    std::error_code error;
    std::filesystem::create_directories(observations, error);
    if (error) {
      return Status::invalid_argument(
          fmt::format("cannot make the folder {} of the observations of personal models: {}; name another with "
                      "--observations",
                      observations.string(), error.message()));
    }
  }
  for (PersonalSpec& spec : specs) {
    const std::string name = spec.name;
    auto served = std::make_unique<Served>();
    served->observations = observations / spec.name;
    served->spec = std::move(spec);
    const Status status = serve(*served);
    if (served->is_served && served->features == nullptr) {
      const Status taken = load_by_itself(*served);
      if (!taken.ok()) options_.on_failure(fmt::format("personal model '{}': {}", name, taken.message()));
    }
    models_.emplace(name, std::move(served));
  }
  if (std::ranges::any_of(models_, [](const auto& model) { return model.second->is_tried_again; })) {
    FOLIOT_ASSIGN_OR_RETURN(retrier_, Thread::start({.name = "foliot-retries", .nice = 10}, [this] { run_retries(); }));
  }
  const bool has_computed =
      std::ranges::any_of(models_, [](const auto& model) { return model.second->features != nullptr; });
  if (has_computed) {
    FOLIOT_RETURN_IF_ERROR(asker_.start(*inference_, rows_max_));
    const auto follow_all = [this] {
      bool is_done = true;
      for (const auto& [name, served] : models_) is_done = follow(*served) && is_done;
      return is_done;
    };
    follower_ = std::make_unique<CatalogFollower>(catalog_, follow_all, kRetryAfter);
    FOLIOT_RETURN_IF_ERROR(follower_->start());
  }
  for (uint32_t i = 0; !models_.empty() && i < options_.threads; ++i) {
    FOLIOT_ASSIGN_OR_RETURN(Thread thread, Thread::start({.name = "foliot-personal"}, [this] { run_reads(); }));
    threads_.push_back(std::move(thread));
  }
  is_open_ = true;
  if (!options_.is_shared || models_.empty()) return Status();
  return start_watching(chooser_, options_.choices_interval, &PersonalModels::follow_choice);
}

Status PersonalModels::serve(Served& served) {
  const Status status = open_model(served);
  if (served.model != nullptr) served.is_served = true;
  // What is written is right or wrong until the server starts again; a disk that is full gets room. Front ends agree at
  // their start on which of them has which users.
  served.is_tried_again = !options_.is_shared &&
                          (status.code() == StatusCode::kResourceExhausted || status.code() == StatusCode::kInternal);
  if (!status.ok() && status.message() != served.failure) {
    options_.on_failure(fmt::format("personal model '{}' cannot be served: {}{}", served.spec.name, status.message(),
                                    served.is_tried_again ? "; it is tried again" : ""));
  }
  served.failure = status.message();
  show(served, status.message());
  return status;
}

Status PersonalModels::open_model(Served& served) {
  FOLIOT_RETURN_IF_ERROR(served.spec.status);
  if (served.spec.features && options_.is_shared) {
    return Status::invalid_argument(
        fmt::format("its features are computed by model '{}', which front ends of a cluster do not serve users with; "
                    "write a table of items, or use `foliot serve`",
                    served.spec.features->model));
  }
  if (served.spec.features) {
    if (inference_ == nullptr) return Status::invalid_argument("no model can compute features here");
    // Its observations are opened with the first features, again if they cannot be now.
    served.features = std::make_unique<FeatureSource>(*served.spec.features, catalog_, asker_);
    Result<std::unique_ptr<DiskStorage>> storage = DiskStorage::open(served.observations);
    if (storage.ok()) served.storage = std::move(storage).value();
    return Status();
  }
  FOLIOT_ASSIGN_OR_RETURN(const std::filesystem::path newest, newest_version(served.spec.folder));
  const std::filesystem::path folder = version_to_begin(served).value_or(newest);
  Result<PersonalVersion> version = open_version(folder);
  if (!version.ok() && folder != newest) {
    report(served, fmt::format("version {}, which was served last, cannot be opened, and {} is served: {}",
                               folder.filename().string(), newest.filename().string(), version.status().message()));
    version = open_version(newest);
  }
  if (!version.ok()) return version.status();
  FOLIOT_ASSIGN_OR_RETURN(std::unique_ptr<DiskStorage> storage, DiskStorage::open(served.observations));
  served.items = version->items->items().size();
  FOLIOT_RETURN_IF_ERROR(open_model(served, std::move(storage), *std::move(version)));
  note_version(served);
  return Status();
}

Status PersonalModels::open_model(Served& served, std::unique_ptr<DiskStorage> storage, PersonalVersion version) {
  PersonalModel::Options options = served.spec.options;
  options.is_shared = options_.is_shared;
  if (options.is_shared) options.durability_is_async = false;  // handing over counts what is on disk
  options.seed = options_.seed ^ hash64(std::as_bytes(std::span(served.spec.name)));
  options.on_failure = [this, &served](const std::string& line) { report(served, line); };
  FOLIOT_ASSIGN_OR_RETURN(std::shared_ptr<UserStore> store, open_store(served));
  FOLIOT_ASSIGN_OR_RETURN(served.model,
                          PersonalModel::open(std::move(storage), std::move(version), options, std::move(store)));
  return Status();
}

void PersonalModels::report(const Served& served, const std::string& line) const {
  options_.on_failure(fmt::format("personal model '{}': {}", served.spec.name, line));
}

// What an earlier process left, and is not used, is removed: it may have users that are forgotten by now.
Result<std::shared_ptr<UserStore>> PersonalModels::open_store(const Served& served) const {
  const std::filesystem::path folder = served.observations / kStoreFolder;
  if (served.spec.store_bytes == 0) {
    FOLIOT_RETURN_IF_ERROR(RocksUserStore::remove_all(folder));
    return std::shared_ptr<UserStore>();
  }
  Result<std::unique_ptr<RocksUserStore>> store = RocksUserStore::open(folder, served.spec.store_bytes);
  if (!store.ok() && store.status().code() == StatusCode::kInternal) {
    report(served, fmt::format("the store of users is filled anew from the log: {}", store.status().message()));
    FOLIOT_RETURN_IF_ERROR(RocksUserStore::remove_all(folder));
    store = RocksUserStore::open(folder, served.spec.store_bytes);
  }
  if (!store.ok()) return store.status();
  return std::shared_ptr<UserStore>(std::move(store).value());
}

std::vector<std::pair<std::string, size_t>> PersonalModels::replicas() const {
  std::vector<std::pair<std::string, size_t>> served_ones;
  for (const auto& [name, served] : models_) {
    if (served->is_served) served_ones.emplace_back(name, served->spec.replicas);
  }
  return served_ones;
}

bool PersonalModels::follow(Served& served) {
  if (served.features == nullptr) return true;
  const MutexLock lock(load_mutex_);
  const Result<FeatureModel> model = served.features->find();
  const std::optional<FeatureModel> used = served.features->used();
  if (model.ok() && used && used->checksum() == model->checksum() && served.failure.empty()) return true;
  const Status status = model.ok() ? take_features(served, *model) : model.status();
  const bool is_new = status.message() != served.failure;
  served.failure = status.message();
  if (is_new || status.ok()) show(served, served.failure);
  if (is_new && !status.ok() && model.ok()) {
    options_.on_failure(fmt::format("personal model '{}': {}", served.spec.name, status.message()));
  }
  return status.ok() || !model.ok();  // without a model, the catalog changes first
}

// REQUIRES: load_mutex_ is held.
Status PersonalModels::take_features(Served& served, const FeatureModel& model) {
  const std::optional<FeatureModel> used = served.features->used();
  if (used && used->checksum() == model.checksum()) return Status();
  if (served.model == nullptr) {
    if (served.storage == nullptr) {
      FOLIOT_ASSIGN_OR_RETURN(served.storage, DiskStorage::open(served.observations));
    }
    served.computed = std::make_shared<ComputedItems>(model.features, model.checksum());
    FOLIOT_RETURN_IF_ERROR(open_model(served, std::move(served.storage),
                                      {.name = model.version, .items = nullptr, .computed = served.computed}));
  }
  const bool is_new = served.computed->checksum() != model.checksum();
  const std::shared_ptr<ComputedItems> next =
      is_new ? std::make_shared<ComputedItems>(model.features, model.checksum()) : served.computed;
  const std::vector<KnownItem> items = served.model->begin_version();
  Status status = served.features->compute(model, items, *next);
  if (status.ok() && is_new) {
    status = served.model->swap({.name = model.version, .items = nullptr, .computed = next},
                                PersonalModel::PoolCheck::kNone);
  }
  if (status.ok()) {
    served.computed = next;
    served.features->use(model, next);
  }
  served.model->end_version();
  if (status.ok()) served.is_served = true;
  return status;
}

void PersonalModels::wait_for_features(const std::function<bool()>& is_over) {
  if (follower_ != nullptr) follower_->wait_until_idle(is_over);
}

void PersonalModels::show(Served& served, const std::string& reason) {
  CatalogEntry entry{
      .name = served.spec.name, .version = {}, .reason = reason, .info = {}, .role = EntryRole::kPersonal};
  if (served.is_served) {
    entry.version = served.model->version();
    entry.state = ModelState::kReady;
    entry.info = std::make_shared<const ModelInfo>(info_of(served.spec, entry.version));
  } else if (served.features != nullptr && reason.empty()) {
    entry.state = ModelState::kLoading;
    entry.reason = fmt::format("waits for model '{}', which computes its features", served.features->model());
  }
  if (served.features != nullptr) entry.models = {served.features->model()};
  catalog_.put(std::move(entry));
}

void PersonalModels::run_retries() {
  MutexLock lock(mutex_);
  for (bool is_done = false; !is_done && !stopping_;) {
    stopped_.wait_for(mutex_, options_.retry_interval, [this]() REQUIRES(mutex_) { return stopping_; });
    if (stopping_) return;
    lock.unlock();
    is_done = true;
    for (const auto& [name, served] : models_) {
      const MutexLock loading(load_mutex_);
      if (!served->is_tried_again) continue;
      if (serve(*served).ok()) options_.on_failure(fmt::format("personal model '{}' is served now", name));
      is_done = is_done && !served->is_tried_again;
    }
    lock.lock();
  }
}

void PersonalModels::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  stopped_.notify_all();
  asker_.stop();  // also what the follower waits for
  if (follower_ != nullptr) follower_->stop();
  threads_.clear();
  watcher_.join();
  chooser_.join();
  retrier_.join();
  const MutexLock lock(load_mutex_);
  for (const auto& [name, served] : models_) served->model.reset();
}

PersonalModels::Served* PersonalModels::find(std::string_view name) const {
  if (!is_open_) return nullptr;
  const auto found = models_.find(name);
  return found == models_.end() ? nullptr : found->second.get();
}

// ---- Calls

PersonalModels::CallPtr PersonalModels::admit(const PersonalCall& call, uint32_t requests, PersonalDone& done) {
  Served* const served = find(call.model);
  if (served == nullptr || !served->is_served) {
    done(call_error(served == nullptr && is_open_
                        ? Status::not_found(fmt::format("unknown personal model '{}'", call.model))
                        : Status::unavailable(fmt::format("personal model '{}' is not ready", call.model))));
    return nullptr;
  }
  const TimePoint now = options_.now();
  TimePoint deadline = call.deadline;
  if (served->spec.default_slo) deadline = std::min(deadline, call.arrival + *served->spec.default_slo);
  const auto refused = [&](Refusal refusal) {
    ++served->counters.refused[static_cast<size_t>(refusal)];
    done(call_error(refusal, call.model, "", call.arrival, now, {}, {.at = deadline}));
    return nullptr;
  };
  if (served->features == nullptr && call.inputs != nullptr) {
    ++served->counters.errors;
    done(call_error(Status::invalid_argument(
        fmt::format("the features of '{}' are in a table: name items without inputs", call.model))));
    return nullptr;
  }
  if (draining_) return refused(Refusal::kDraining);
  if (deadline <= now) return refused(Refusal::kUnmeetable);
  if (call.tenant != nullptr) {
    if (std::optional<CallError> over = call.tenant->enter(requests, now)) {
      ++served->counters.errors;
      done(*std::move(over));
      return nullptr;
    }
  }
  ++in_flight_;
  return std::make_shared<Call>(*served, call.model, call.arrival, deadline, std::move(done), call.tenant, requests);
}

void PersonalModels::finish(Call& call, std::variant<PersonalAnswer, Status> result) {
  PersonalCounters& counters = call.served.counters;
  if (!std::holds_alternative<Status>(result) && options_.now() > call.deadline)
    return refuse(call, Refusal::kLate, {});
  call.lease.reset();
  if (const auto* const status = std::get_if<Status>(&result)) {
    ++counters.errors;
    call.done(call_error(*status));
  } else {
    call.done(std::get<PersonalAnswer>(std::move(result)));
  }
  count_answered();
}

void PersonalModels::count_answered() {
  if (--in_flight_ > 0 || !draining_) return;
  const MutexLock lock(mutex_);
  answered_.notify_all();
}

bool PersonalModels::wait_until_answered(Duration timeout) {
  MutexLock lock(mutex_);
  return answered_.wait_for(mutex_, timeout, [this]() REQUIRES(mutex_) { return in_flight_ == 0; });
}

void PersonalModels::refuse(Call& call, Refusal refusal, TimePoint earliest) {
  ++call.served.counters.refused[static_cast<size_t>(refusal)];
  call.lease.reset();
  call.done(call_error(refusal, call.model_name, "", call.arrival, options_.now(), earliest, {.at = call.deadline}));
  count_answered();
}

void PersonalModels::fail(Call& call, CallError error) {
  uint8_t reason = 0;
  for (uint8_t i = 1; i <= static_cast<uint8_t>(kRefusalLast); ++i) {
    if (error.reason == to_string(static_cast<Refusal>(i))) reason = i;
  }
  reason == 0 ? ++call.served.counters.errors : ++call.served.counters.refused[reason];
  call.lease.reset();
  call.done(std::move(error));
  count_answered();
}

void PersonalModels::resolve(const CallPtr& call, const PersonalCall& given, std::vector<uint64_t> items,
                             WithRows next) {
  FeatureSource::ItemsOfCall of_call{.items = std::move(items),
                                     .inputs = given.inputs,
                                     .arrival = call->arrival,
                                     .deadline = call->deadline,
                                     .tenant = given.tenant};
  const auto done = [this, call, next = std::move(next)](std::variant<ComputedRows, CallError> resolved) {
    if (auto* const error = std::get_if<CallError>(&resolved)) return fail(*call, std::move(*error));
    next(std::make_shared<const ComputedRows>(std::get<ComputedRows>(std::move(resolved))));
  };
  call->served.features->resolve(call->model, std::move(of_call), done);
}

void PersonalModels::start_read(CallPtr call, uint64_t units, std::function<Result<PersonalAnswer>()> read) {
  const TimePoint now = options_.now();
  MutexLock lock(mutex_);
  Call& started = *call;
  if (stopping_) {
    lock.unlock();
    return refuse(started, Refusal::kDraining, {});
  }
  ReadQueue::Read entry{.deadline = started.deadline, .estimate = started.served.cost.estimate(units, now)};
  entry.run = [this, call, units, read = std::move(read)](Refusal refusal) {
    if (refusal != Refusal::kNone) return refuse(*call, refusal, {});
    const TimePoint begin = options_.now();
    Result<PersonalAnswer> answer = read();
    const TimePoint end = options_.now();
    if (!answer.ok()) return finish(*call, answer.status());
    {
      const MutexLock measured(mutex_);
      call->served.cost.record(end - begin, units, end);
    }
    PersonalCounters& counters = call->served.counters;
    answer->lists.empty() ? ++counters.predictions : ++counters.top_ks;
    if (!answer->lists.empty()) count_duration(counters, end - begin);
    finish(*call, *std::move(answer));
  };
  const std::optional<ReadQueue::Refused> refused = queue_->offer(std::move(entry), now);
  lock.unlock();
  if (refused) return refuse(started, refused->refusal, refused->earliest);
  changed_.notify_one();
}

void PersonalModels::run_reads() {
  MutexLock lock(mutex_);
  while (true) {
    changed_.wait(mutex_, [this]() REQUIRES(mutex_) { return stopping_ || queue_->size() > 0; });
    std::optional<ReadQueue::Taken> taken = queue_->take(options_.now());
    if (!taken) return;  // it stops
    const Refusal refusal = stopping_ ? Refusal::kDraining : taken->refusal;
    lock.unlock();
    taken->read.run(refusal);
    lock.lock();
    queue_->finish(taken->read.estimate);
  }
}

void PersonalModels::predict(const PersonalCall& call, std::vector<UserItem> pairs, PersonalDone done) {
  const CallPtr admitted = admit(call, static_cast<uint32_t>(pairs.size()), done);
  if (admitted == nullptr) return;
  const uint64_t units = pairs.size() * kUnitsOfUser;
  PersonalModel* const model = &admitted->model;
  if (admitted->served.features != nullptr) {
    std::vector<uint64_t> items;
    for (const UserItem& pair : pairs) items.push_back(pair.item);
    const auto read = [=, this, pairs = std::move(pairs)](const std::shared_ptr<const ComputedRows>& rows) {
      start_read(admitted, units, [model, pairs, rows]() -> Result<PersonalAnswer> {
        PersonalAnswer answer;
        for (size_t i = 0; i < pairs.size(); ++i) {
          FOLIOT_ASSIGN_OR_RETURN(UserPrediction prediction, model->predict(pairs[i].user, *rows, i));
          answer.predictions.push_back(prediction.value);
          answer.version = std::move(prediction.version);
        }
        return answer;
      });
    };
    return resolve(admitted, call, std::move(items), read);
  }
  start_read(admitted, units, [model, pairs = std::move(pairs)]() -> Result<PersonalAnswer> {
    PersonalAnswer answer;
    for (const UserItem& pair : pairs) {
      FOLIOT_ASSIGN_OR_RETURN(UserPrediction prediction, model->predict(pair.user, pair.item));
      answer.predictions.push_back(prediction.value);
      answer.version = std::move(prediction.version);
    }
    return answer;
  });
}

void PersonalModels::top_k(const PersonalCall& call, TopKQuery query, PersonalDone done) {
  const CallPtr admitted = admit(call, static_cast<uint32_t>(query.users.size()), done);
  if (admitted == nullptr) return;
  PersonalModel* const model = &admitted->model;
  if (admitted->served.features != nullptr) {
    if (query.items.empty()) {
      return finish(*admitted, Status::invalid_argument(fmt::format(
                                   "the features of '{}' are computed: name the items to choose from", call.model)));
    }
    const uint64_t units = query.users.size() * (query.items.size() + kUnitsOfUser);
    std::vector<uint64_t> candidates = std::move(query.items);
    const auto read = [=, this, query = std::move(query)](const std::shared_ptr<const ComputedRows>& rows) {
      start_read(admitted, units, [model, query, rows]() -> Result<PersonalAnswer> {
        PersonalAnswer answer;
        for (const uint64_t user : query.users) {
          FOLIOT_ASSIGN_OR_RETURN(TopK list, model->top_k_of(user, *rows, query.k));
          answer.lists.push_back(to_list(list));
          answer.version = std::move(list.version);
        }
        return answer;
      });
    };
    return resolve(admitted, call, std::move(candidates), read);
  }
  const uint64_t items = query.items.empty() ? admitted->served.items.load() : query.items.size();
  const uint64_t units = query.users.size() * (items + kUnitsOfUser);
  start_read(admitted, units, [model, query = std::move(query)]() -> Result<PersonalAnswer> {
    PersonalAnswer answer;
    for (const uint64_t user : query.users) {
      FOLIOT_ASSIGN_OR_RETURN(TopK list, model->top_k(user, query.items, query.k));
      answer.lists.push_back(to_list(list));
      answer.version = std::move(list.version);
    }
    return answer;
  });
}

void PersonalModels::on_changed(const CallPtr& call, const Status& status) {
  if (!status.ok()) {
    const MutexLock lock(call->mutex);
    if (call->status.ok()) call->status = status;
  }
  if (call->pending.fetch_sub(1) > 1) return;
  Status first;
  {
    const MutexLock lock(call->mutex);
    first = call->status;
  }
  if (!first.ok()) return finish(*call, first);
  finish(*call, PersonalAnswer{.version = call->model.version()});
}

void PersonalModels::observe(const PersonalCall& call, std::vector<ItemObservation> observations, PersonalDone done) {
  const CallPtr admitted = admit(call, static_cast<uint32_t>(observations.size()), done);
  if (admitted == nullptr) return;
  if (admitted->served.features == nullptr) return observe_all(admitted, observations, nullptr);
  std::vector<uint64_t> items;
  for (const ItemObservation& observation : observations) items.push_back(observation.item);
  const auto record = [this, admitted,
                       observations = std::move(observations)](const std::shared_ptr<const ComputedRows>& rows) {
    observe_all(admitted, observations, rows.get());
  };
  resolve(admitted, call, std::move(items), record);
}

void PersonalModels::observe_all(const CallPtr& call, const std::vector<ItemObservation>& observations,
                                 const ComputedRows* rows) {
  const auto group_of = [&observations](size_t place) {
    return std::tie(observations[place].user, observations[place].query);
  };
  std::vector<size_t> order(observations.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, group_of);
  std::vector<ItemObservation> group;
  Status status;
  for (size_t begin = 0; begin < order.size() && status.ok();) {
    size_t end = begin;
    group.clear();
    for (; end < order.size() && group_of(order[end]) == group_of(order[begin]); ++end) {
      group.push_back(observations[order[end]]);
    }
    status = observe_group(call, group, rows, std::span(order).subspan(begin, end - begin));
    begin = end;
  }
  on_changed(call, status);
}

Status PersonalModels::observe_group(const CallPtr& call, std::span<const ItemObservation> group,
                                     const ComputedRows* rows, std::span<const size_t> places) {
  std::vector<UserObservation> of_user;
  for (const ItemObservation& given : group) {
    of_user.push_back({.id = given.id, .item = given.item, .value = to_value(given.value)});
  }
  PersonalCounters& counters = call->served.counters;
  ++call->pending;
  ++counters.waiting;
  const auto done = [this, call, count = of_user.size()](const Status& written) {
    --call->served.counters.waiting;
    if (written.ok()) call->served.counters.observations += count;
    on_changed(call, written);
  };
  const uint64_t user = group.front().user;
  const uint64_t query = group.front().query;
  const Status status = rows == nullptr ? call->model.observe(user, of_user, done, query)
                                        : call->model.observe(user, of_user, *rows, places, done, query);
  if (!status.ok()) {
    --counters.waiting;
    --call->pending;
  }
  return status;
}

void PersonalModels::forget(const PersonalCall& call, std::vector<uint64_t> users, PersonalDone done) {
  const CallPtr admitted = admit(call, static_cast<uint32_t>(users.size()), done);
  if (admitted == nullptr) return;
  Served& served = admitted->served;
  Status status;
  for (size_t i = 0; i < users.size() && status.ok(); ++i) {
    ++admitted->pending;
    ++served.counters.waiting;
    status = admitted->model.forget(users[i], [this, admitted](const Status& written) {
      --admitted->served.counters.waiting;
      if (written.ok()) ++admitted->served.counters.forgotten;
      on_changed(admitted, written);
    });
    if (!status.ok()) {
      --served.counters.waiting;
      --admitted->pending;
    }
  }
  on_changed(admitted, status);
}

// ---- Statistics

PersonalModels::Statistics PersonalModels::statistics_of(const Served& served) {
  return {.model = served.spec.name,
          .counters = &served.counters,
          .learned = served.model->statistics(),
          .snapshots = served.model->snapshots(),
          .torn_bytes = served.model->torn_bytes(),
          .features = served.features.get(),
          .memory = served.model->memory()};
}

std::vector<PersonalModels::Statistics> PersonalModels::statistics() const {
  std::vector<Statistics> all;
  if (!is_open_) return all;
  for (const auto& [name, served] : models_) {
    if (served->is_served) all.push_back(statistics_of(*served));
  }
  return all;
}

std::optional<PersonalModels::Statistics> PersonalModels::statistics(const std::string& name) const {
  const Served* const served = find(name);
  if (served == nullptr || !served->is_served) return std::nullopt;
  return statistics_of(*served);
}

std::vector<PersonalModels::Retrained> PersonalModels::retrained() const {
  std::vector<Retrained> all;
  for (const auto& [name, served] : models_) {
    if (served->spec.status.ok() && served->spec.retrain.any()) {
      all.push_back({.spec = &served->spec, .observations = &served->observations});
    }
  }
  return all;
}

size_t PersonalModels::waiting_reads() const {
  if (!is_open_) return 0;
  const MutexLock lock(mutex_);
  return queue_->size();
}

}  // namespace foliot
