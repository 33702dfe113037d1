#include "answer/personal/service/personal_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "answer/personal/items/item_input.h"
#include "answer/personal/storage/user_records.h"
#include "answer/personal/weights/cholesky.h"

namespace foliot {
namespace {

Status check_options(const PersonalModel::Options& options, bool has_store) {
  const auto wrong = [](const char* name, double value, std::string_view limit) {
    return Status::invalid_argument(fmt::format("{} = {}: must be {}", name, value, limit));
  };
  const float lambda = options.table.lambda;
  if (!(lambda > 0) || !std::isfinite(lambda)) return wrong("lambda", lambda, "above 0 and finite");
  if (options.table.factors_max == 0) return wrong("factors_max", 0, "at least 1");
  if (options.observations_per_user_max > PersonalModel::kObservationsPerUserMax) {
    return wrong("observations_per_user_max", static_cast<double>(options.observations_per_user_max),
                 fmt::format("at most {}", PersonalModel::kObservationsPerUserMax));
  }
  const Exploration& exploration = options.exploration;
  if (!(exploration.epsilon >= 0 && exploration.epsilon <= 1)) return wrong("epsilon", exploration.epsilon, "0 to 1");
  if (!(exploration.pool >= 0 && exploration.pool <= 1)) return wrong("pool", exploration.pool, "0 to 1");
  if (!(exploration.alpha >= 0)) return wrong("alpha", exploration.alpha, "0 or more");
  if (!(exploration.deviation >= 0)) return wrong("deviation", exploration.deviation, "0 or more");
  if (!(options.value_min < options.value_max)) return wrong("value_min", options.value_min, "below value_max");
  if (has_store && options.users_bytes_max == 0) return wrong("users_bytes_max", 0, "above 0 with a store of users");
  return Status();
}

Status unknown_item(uint64_t item) {
  return Status::not_found(fmt::format("item {} is unknown; name one of the table of items", item));
}

Result<std::vector<size_t>> find_candidates(const ItemTable& table, std::span<const uint64_t> items) {
  std::vector<size_t> candidates;
  for (const uint64_t item : items) {
    const std::optional<size_t> place = table.find(item);
    if (!place) return unknown_item(item);
    candidates.push_back(*place);
  }
  std::sort(candidates.begin(), candidates.end());
  if (const auto twice = std::adjacent_find(candidates.begin(), candidates.end()); twice != candidates.end()) {
    return Status::invalid_argument(
        fmt::format("item {} is named twice; name each candidate once", table.items()[*twice]));
  }
  return candidates;
}

Status check_places(size_t k) {
  if (k > 0 && k <= PersonalModel::kPlacesMax) return Status();
  return Status::invalid_argument(fmt::format("k = {}: must be 1 to {}", k, PersonalModel::kPlacesMax));
}

Status check_twice(std::vector<uint64_t> items) {
  std::sort(items.begin(), items.end());
  const auto twice = std::adjacent_find(items.begin(), items.end());
  if (twice == items.end()) return Status();
  return Status::invalid_argument(fmt::format("item {} is named twice; name each candidate once", *twice));
}

Status other_version() {
  return Status::unavailable("another version of the feature model is served by now; try again");
}

}  // namespace

PersonalModel::PersonalModel(PersonalVersion version, const Options& options, std::shared_ptr<UserStore> store)
    : options_(options),
      random_(options.seed),
      weights_(std::make_unique<WeightTable>(users_, std::move(version), options.table)),
      known_items_(options.inputs_bytes_max),
      lists_(options.lists_bytes_max) {
  if (store == nullptr) return;
  const UserMemory::Options of_memory{
      .bytes_max = options.users_bytes_max, .waiting_max = options.log.records_max, .on_failure = options.on_failure};
  memory_ = std::make_unique<UserMemory>(of_memory, std::move(store), mutex_, users_);
}

Result<std::unique_ptr<PersonalModel>> PersonalModel::open(std::unique_ptr<Storage> storage,
                                                           const PersonalVersion& version, const Options& options,
                                                           const std::shared_ptr<UserStore>& store) {
  FOLIOT_RETURN_IF_ERROR(check_options(options, store != nullptr));
  FOLIOT_RETURN_IF_ERROR(version.check());
  while (true) {
    std::unique_ptr<PersonalModel> model(new PersonalModel(version, options, store));
    FOLIOT_ASSIGN_OR_RETURN(
        model->log_,
        RecordLog::open(*storage,
                        {.limits = options.log, .seed = options.seed, .snapshot_after = options.snapshot_after}, *model,
                        *model, *model));
    MutexLock lock(model->mutex_);
    FOLIOT_RETURN_IF_ERROR(model->open_status_);
    const uint64_t last = model->log_->last_at_open();
    if (model->stored_number_.value_or(0) > last) {
      options.on_failure(
          fmt::format("the store of users is filled anew from the log: it has records up to {}, and the log ends at {}",
                      *model->stored_number_, last));
      lock.unlock();
      model.reset();
      FOLIOT_RETURN_IF_ERROR(store->clear());
      continue;
    }
    model->last_number_ = std::max(model->last_number_, last);
    FOLIOT_RETURN_IF_ERROR(model->count_items());
    if (model->memory_ != nullptr) FOLIOT_RETURN_IF_ERROR(model->memory_->start());
    model->storage_ = std::move(storage);
    model->is_open_ = true;
    return model;
  }
}

PersonalModel::~PersonalModel() {
  if (memory_ != nullptr) memory_->stop();
  if (log_ != nullptr) log_->close();
  if (memory_ == nullptr || !is_open_) return;
  const Status status = memory_->close({.salt = log_->salt(),
                                        .number = last_number_,
                                        .counts_items = counts_items_,
                                        .fingerprint = weights_->fingerprint(),
                                        .population = users_.population().state(),
                                        .pool = {pool_.begin(), pool_.end()}});
  if (status.ok()) return;
  options_.on_failure(fmt::format("the store of users is filled anew after a restart: {}", status.message()));
}

Result<UserPrediction> PersonalModel::predict(uint64_t user, uint64_t item) {
  MutexLock lock(mutex_);
  FOLIOT_RETURN_IF_ERROR(load(user));
  const std::optional<std::span<const float>> features = weights_->items().features_of(item);
  if (!features) return unknown_item(item);
  UserPrediction prediction{.observations = users_.observations(user).size(), .version = weights_->version().name};
  prediction.value = product(*features, weights_->weights(user));
  return prediction;
}

Result<UserPrediction> PersonalModel::predict(uint64_t user, const ComputedRows& rows, size_t index) {
  MutexLock lock(mutex_);
  FOLIOT_RETURN_IF_ERROR(load(user));
  const auto features = is_served(rows) ? rows.row(index) : weights_->items().features_of(rows.items[index]);
  if (!features) return other_version();
  UserPrediction prediction{.observations = users_.observations(user).size(), .version = weights_->version().name};
  prediction.value = product(*features, weights_->weights(user));
  return prediction;
}

PersonalModel::Ranking PersonalModel::rank(uint64_t user, size_t k) {
  Ranking ranking{.random = random_.fork(), .version = weights_->version().name};
  const std::span<const float> known = weights_->weights(user);
  ranking.weights.assign(known.begin(), known.end());
  if (k > 0 && options_.lists_bytes_max > 0 && !options_.exploration.draws_weights()) {
    const std::optional<uint32_t> place = users_.find(user);
    ranking.key = lists_.key({.user = user,
                              .first_number = place ? users_.user(*place).first_number : 0,
                              .observations = users_.observations(user).size(),
                              .version = weights_->fingerprint(),
                              .k = k,
                              .weights = ranking.weights});
    ranking.best = lists_.find(*ranking.key);
    if (ranking.best) ++cached_lists_;
  }
  if (options_.exploration.needs_factor() && !ranking.best) ranking.factor.emplace(weights_->factor(user));
  return ranking;
}

TopK PersonalModel::rank(uint64_t user, Ranking ranking, const ItemRows& rows, const std::vector<size_t>* candidates,
                         size_t k) {
  TopK result{.version = std::move(ranking.version)};
  result.query = (ranking.random.next() >> 11) | 1;  // below 2^53: JSON's readers may keep numbers as doubles
  const UserWeights* const factor = ranking.factor ? &*ranking.factor : nullptr;
  if (ranking.key && !ranking.best) {
    ranking.best = best_items(options_.exploration, rows, ranking.weights, factor, std::min(k, rows.items.size()),
                              candidates, ranking.random);
    const MutexLock lock(mutex_);
    lists_.insert(*ranking.key, *ranking.best);
  }
  result.places = explore(options_.exploration, rows, ranking.weights, factor, k, candidates, ranking.random,
                          ranking.best ? &*ranking.best : nullptr);
  if (std::any_of(result.places.begin(), result.places.end(), [](const ScoredItem& one) { return one.is_drawn; })) {
    const MutexLock lock(mutex_);
    for (const ScoredItem& one : result.places) {
      if (one.is_drawn) drawn_.add(result.query, user, one.item, one.probability);
    }
  }
  return result;
}

Result<TopK> PersonalModel::top_k(uint64_t user, std::span<const uint64_t> items, size_t k) {
  FOLIOT_RETURN_IF_ERROR(check_places(k));
  MutexLock lock(mutex_);
  FOLIOT_RETURN_IF_ERROR(load(user));
  const std::shared_ptr<const ItemTable> table = weights_->version().items;
  if (table == nullptr) return Status::invalid_argument("features are computed: name the items to choose from");
  Ranking ranking = rank(user, items.empty() ? k : 0);
  lock.unlock();
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<size_t> candidates, find_candidates(*table, items));
  return rank(user, std::move(ranking), table->all(), items.empty() ? nullptr : &candidates, k);
}

Result<TopK> PersonalModel::top_k_of(uint64_t user, const ComputedRows& rows, size_t k) {
  FOLIOT_RETURN_IF_ERROR(check_places(k));
  FOLIOT_RETURN_IF_ERROR(check_twice(rows.items));
  MutexLock lock(mutex_);
  FOLIOT_RETURN_IF_ERROR(load(user));
  ComputedRows made;
  const ComputedRows* const served = served_rows(rows, made);
  if (served == nullptr) return other_version();
  Ranking ranking = rank(user, 0);
  lock.unlock();
  return rank(user, std::move(ranking), {served->items, served->values, served->by->width()}, nullptr, k);
}

Status PersonalModel::check_observations(std::span<const UserObservation> observations) {
  if (observations.empty() || observations.size() > kObservationsPerCallMax) {
    return Status::invalid_argument(
        fmt::format("{} observations in a call: must be 1 to {}", observations.size(), kObservationsPerCallMax));
  }
  for (const UserObservation& observation : observations) {
    if (!std::isfinite(observation.value)) {
      return Status::invalid_argument(
          fmt::format("the value of item {} is {}: must be finite", observation.item, observation.value));
    }
  }
  return Status();
}

Status PersonalModel::observe(uint64_t user, std::span<const UserObservation> observations, Done done, uint64_t query) {
  MutexLock lock(mutex_);
  const std::shared_ptr<const ItemTable> items = weights_->version().items;
  lock.unlock();
  for (const UserObservation& observation : observations) {
    if (items == nullptr || !items->find(observation.item)) return unknown_item(observation.item);
  }
  FOLIOT_RETURN_IF_ERROR(check_observations(observations));
  UserChange change{.user = user, .observations = {observations.begin(), observations.end()}, .done = std::move(done)};
  lock.lock();
  return submit(std::move(change), query);
}

Status PersonalModel::observe(uint64_t user, std::span<const UserObservation> observations, const ComputedRows& rows,
                              std::span<const size_t> places, Done done, uint64_t query) {
  FOLIOT_RETURN_IF_ERROR(check_observations(observations));
  UserChange change{.user = user, .observations = {observations.begin(), observations.end()}, .done = std::move(done)};
  MutexLock lock(mutex_);
  ComputedRows made;
  const ComputedRows* const served = served_rows(rows, made);
  if (served == nullptr) return other_version();
  FOLIOT_RETURN_IF_ERROR(claim_items(*served, places, change));
  return submit(std::move(change), query);
}

const ComputedRows* PersonalModel::served_rows(const ComputedRows& rows, ComputedRows& made) const {
  if (is_served(rows)) return &rows;
  made = {.by = weights_->version().computed, .items = rows.items, .inputs = rows.inputs};
  for (const uint64_t item : made.items) {
    const std::optional<std::span<const float>> features = made.by->features_of(item);
    if (!features) return nullptr;
    made.values.insert(made.values.end(), features->begin(), features->end());
  }
  return &made;
}

// After an error nothing is claimed.
Status PersonalModel::claim_items(const ComputedRows& rows, std::span<const size_t> places, UserChange& change) {
  change.by = rows.by;
  size_t bytes = 0;
  Status status;
  for (size_t i = 0; i < places.size() && status.ok(); ++i) {
    const uint64_t item = rows.items[places[i]];
    const ItemInput& input = rows.inputs[places[i]];
    const bool is_of_change = std::ranges::find(change.claims, item) != change.claims.end();
    const bool is_new = !is_of_change && known_items_.find(item) == nullptr;
    if (is_new && input != nullptr) {
      bytes += input->size();
      if (makes_version_)
        status = Status::unavailable("another version of the feature model is being taken; try again");
      if (bytes > kItemInputBytesMax) {
        status = Status::invalid_argument(
            fmt::format("the inputs of new items that one user observed have {} bytes and more, limit {}; send fewer "
                        "observations in a call",
                        bytes, kItemInputBytesMax));
      }
    }
    if (status.ok()) status = known_items_.claim(item, input);
    if (!status.ok()) break;
    if (is_of_change) {
      known_items_.release(item);
      continue;
    }
    change.claims.push_back(item);
    if (!is_new) continue;
    change.items.push_back({item, input});
    const std::span<const float> row = rows.row(places[i]);
    change.features.insert(change.features.end(), row.begin(), row.end());
  }
  if (!status.ok()) release_items(change);
  return status;
}

void PersonalModel::release_items(const UserChange& change) {
  for (const uint64_t item : change.claims) {
    if (known_items_.release(item)) left_items_.push_back(item);
  }
  drop_features();
}

// Once all records are read: an observation may come after the user was forgotten that brought the item's input.
Status PersonalModel::count_items() {
  counts_items_ = counts_items_ || weights_->version().computed != nullptr || known_items_.has_kept();
  if (!counts_items_) return Status();
  const auto use = [this](const ObservationTable::User& user) REQUIRES(mutex_) {
    for (const UserObservation& one : user.observations) known_items_.use(one.item);
  };
  for (size_t place = 0; place < users_.places(); ++place) use(users_.user(place));
  UserMemory::Cursor cursor;
  while (memory_ != nullptr && !cursor.is_at_end) {
    FOLIOT_ASSIGN_OR_RETURN(const UserMemory::Scanned scanned, memory_->scan(cursor, SIZE_MAX));
    for (const UserValue& value : scanned.away) use(value.user);
  }
  known_items_.remove_unused();
  return Status();
}

void PersonalModel::stop_using(std::span<const UserObservation> observations) {
  for (const UserObservation& one : observations) {
    if (known_items_.stop_using(one.item)) left_items_.push_back(one.item);
  }
  drop_features();
}

// Not while a version is being made: its features are those of the items that were known, and they are read without the
// lock.
void PersonalModel::drop_features() {
  if (makes_version_ || next_ != nullptr) return;
  ComputedItems* const computed = weights_->version().computed.get();
  for (const uint64_t item : left_items_) {
    if (computed != nullptr && known_items_.find(item) == nullptr) computed->remove(item);
  }
  left_items_.clear();
}

Status PersonalModel::carry_out(const Step& step) {
  Done at_once;
  Status status = step(at_once);
  if (!at_once) return status;
  mutex_.unlock();
  at_once(Status());
  mutex_.lock();
  return status;
}

Status PersonalModel::carry_out_later(uint64_t user, const Done& done, Step step, std::function<void()> refused) {
  return memory_->wait(
      user, [done, step = std::move(step), refused = std::move(refused)](const Status& loaded) -> UserMemory::Answer {
        Done at_once;
        if (!loaded.ok()) refused();
        const Status status = loaded.ok() ? step(at_once) : loaded;
        if (!status.ok()) return [done, status] { done(status); };
        if (!at_once) return nullptr;
        return [at_once] { at_once(Status()); };
      });
}

Status PersonalModel::submit(UserChange change, uint64_t query) {
  const uint64_t user = change.user;
  const auto waiting = std::make_shared<UserChange>(std::move(change));
  const auto step = [this, waiting, query](Done& at_once)
                        REQUIRES(mutex_) { return record(std::move(*waiting), query, at_once); };
  const auto refused = [this, waiting]() REQUIRES(mutex_) { release_items(*waiting); };
  Status status = memory_ == nullptr ? Status() : memory_->admit();
  if (status.ok() && may_observe(user)) return carry_out(step);
  if (status.ok()) status = carry_out_later(user, waiting->done, step, refused);
  if (!status.ok()) refused();
  return status;
}

// What waits for the disk counts.
Status PersonalModel::check_limits(const UserChange& change) const {
  const size_t limit = options_.observations_per_user_max;
  const size_t known = users_.observations(change.user).size();
  const size_t coming = waiting_.observations(change.user);
  if (known + coming + change.observations.size() > limit) {
    std::unordered_set<uint64_t> ids;
    const auto add = [&ids](std::span<const UserObservation> observations) {
      for (const UserObservation& one : observations) ids.insert(one.id);
      return ids.size();
    };
    add(users_.observations(change.user));
    waiting_.for_each(change.user, [&](const UserChange& each) { add(each.observations); });
    const size_t before = ids.size();
    if (add(change.observations) > limit) {
      return Status::resource_exhausted(fmt::format(
          "the user has {} observations, and {} more are over the limit of {}", before, ids.size() - before, limit));
    }
  }
  if (known == 0 && coming == 0 && count_users() + waiting_.new_users() >= options_.users_max) {
    return Status::resource_exhausted(fmt::format("limit of {} users reached; forget some", options_.users_max));
  }
  return Status();
}

ValueRange PersonalModel::value_range() const {
  return options_.table.learns_range ? users_.population().range()
                                     : ValueRange{.low = options_.value_min, .high = options_.value_max};
}

Status PersonalModel::record(UserChange change, uint64_t query, Done& at_once) {
  const ValueRange range = value_range();
  uint64_t outside = 0;
  for (UserObservation& observation : change.observations) {
    outside += range.contains(observation.value) ? 0 : 1;
    observation.value = std::clamp(observation.value, options_.value_min, options_.value_max);
    observation.probability = 0;
  }
  const uint64_t user = change.user;
  if (std::all_of(change.observations.begin(), change.observations.end(),
                  [&](const UserObservation& observation)
                      REQUIRES(mutex_) { return users_.has(user, observation.id); })) {
    release_items(change);
    at_once = std::move(change.done);
    return Status();
  }
  if (Status status = check_limits(change); !status.ok()) {
    release_items(change);
    return status;
  }
  for (UserObservation& observation : change.observations) {
    if (query != 0) observation.probability = drawn_.take(query, user, observation.item);
  }
  outside_ += outside;
  const std::vector<std::byte> bytes = encode_record(user, change.observations, change.items);
  return append(bytes, std::move(change), at_once);
}

ItemInput PersonalModel::input_of(uint64_t item) {
  const MutexLock lock(mutex_);
  return known_items_.find(item);
}

UserDigest PersonalModel::digest_at(const ObservationTable::User& user) const {
  return digest_of(user.id, user.generation, user.observations);
}

Result<std::vector<UserDigest>> PersonalModel::digests(UserPass& pass, size_t count) {
  MutexLock lock(mutex_);
  std::vector<UserDigest> found;
  if (memory_ != nullptr && pass.place == 0) pass.stored = memory_->begin_pass();
  for (; pass.place < users_.places() && found.size() < count; ++pass.place) {
    if (memory_ != nullptr) memory_->visit(static_cast<uint32_t>(pass.place), pass.stored);
    if (users_.user(pass.place).is_used) found.push_back(digest_at(users_.user(pass.place)));
  }
  while (memory_ != nullptr && found.empty() && !pass.stored.is_at_end) {
    pass.place = std::max<size_t>(pass.place, 1);  // the pass goes on
    FOLIOT_ASSIGN_OR_RETURN(const UserMemory::Scanned scanned, memory_->scan(pass.stored, count));
    for (const uint32_t in_memory : scanned.places) found.push_back(digest_at(users_.user(in_memory)));
    for (const UserValue& value : scanned.away) found.push_back(digest_at(value.user));
  }
  return found;
}

Result<PersonalModel::Copies> PersonalModel::copies(UserPass& pass, size_t count,
                                                    const std::function<bool(uint64_t)>& is_wanted) {
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<UserDigest> digests, this->digests(pass, count));
  Copies found{.is_over = digests.empty()};
  for (const UserDigest& digest : digests) {
    if (digest.observations == 0 || !is_wanted(digest.user)) continue;
    FOLIOT_ASSIGN_OR_RETURN(std::vector<std::byte> copy, this->copy(digest.user));
    if (!copy.empty()) found.copies.push_back(std::move(copy));
  }
  return found;
}

Result<UserDigest> PersonalModel::digest(uint64_t user) {
  MutexLock lock(mutex_);
  FOLIOT_RETURN_IF_ERROR(load(user));
  const std::optional<uint32_t> place = users_.find(user);
  return place ? digest_at(users_.user(*place)) : UserDigest{.user = user};
}

Result<std::vector<std::byte>> PersonalModel::copy(uint64_t user) {
  MutexLock lock(mutex_);
  FOLIOT_RETURN_IF_ERROR(load(user));
  const std::optional<uint32_t> place = users_.find(user);
  if (!place) return std::vector<std::byte>();
  return encode_copy(user, users_.user(*place).generation, users_.user(*place).observations);
}

Result<std::vector<std::byte>> PersonalModel::copy(uint64_t user, const std::vector<uint64_t>& ids) {
  MutexLock lock(mutex_);
  FOLIOT_RETURN_IF_ERROR(load(user));
  const std::optional<uint32_t> place = users_.find(user);
  if (!place) return std::vector<std::byte>();
  std::vector<UserObservation> chosen;
  for (const UserObservation& one : users_.user(*place).observations) {
    if (std::ranges::find(ids, one.id) != ids.end()) chosen.push_back(one);
  }
  return encode_copy(user, users_.user(*place).generation, chosen);
}

Status PersonalModel::merge(std::span<const std::byte> copy, const Done& done) {
  const std::optional<UserRecord> decoded = decode_record(copy);
  if (!decoded || !decoded->generation) return Status::invalid_argument("it is no copy of a user");
  const uint64_t user = decoded->user;
  const auto step = [this, decoded, done](Done& at_once) REQUIRES(mutex_) {
    const uint64_t generation = *decoded->generation;
    const std::span<const UserObservation> all = decoded->observations;
    size_t begin = 0;
    do {
      const std::span<const UserObservation> part =
          all.subspan(begin, std::min(kObservationsPerCopy, all.size() - begin));
      begin += part.size();
      UserChange change{.user = decoded->user, .generation = generation, .observations = {part.begin(), part.end()}};
      change.done = begin == all.size() ? done : [](const Status&) {};
      FOLIOT_RETURN_IF_ERROR(append(encode_copy(decoded->user, generation, part), std::move(change), at_once));
    } while (begin < all.size());
    return Status();
  };
  MutexLock lock(mutex_);
  if (memory_ != nullptr) FOLIOT_RETURN_IF_ERROR(memory_->admit());
  return may_observe(user) ? carry_out(step) : carry_out_later(user, done, step);
}

void PersonalModel::drop(const UserDigest& digest, const Done& done) {
  const auto step = [this, digest, done](Done& at_once) REQUIRES(mutex_) {
    const std::optional<uint32_t> place = users_.find(digest.user);
    const bool has_changed = !place || digest_at(users_.user(*place)) != digest || waiting_.has(digest.user);
    if (!has_changed) {
      return append(encode_record(digest.user, {}), {.user = digest.user, .forgets = true, .done = done}, at_once);
    }
    at_once = done;
    return Status();
  };
  MutexLock lock(mutex_);
  const Status status = is_known(digest.user) ? carry_out(step) : carry_out_later(digest.user, done, step);
  if (status.ok()) return;
  lock.unlock();
  done(status);
}

uint64_t PersonalModel::last_generation(uint64_t user) const {
  const std::optional<uint32_t> place = users_.find(user);
  uint64_t last = place ? users_.user(*place).generation : 0;
  waiting_.for_each(user, [&](const UserChange& each) { last = std::max(last, each.generation.value_or(0)); });
  return last;
}

Status PersonalModel::forget(uint64_t user, const Done& done) {
  const auto step = [this, user, done](Done& at_once) REQUIRES(mutex_) {
    if (options_.is_shared) {
      const uint64_t generation = last_generation(user) + 1;
      return append(encode_copy(user, generation, {}), {.user = user, .generation = generation, .done = done}, at_once);
    }
    return append(encode_record(user, {}), {.user = user, .forgets = true, .done = done}, at_once);
  };
  MutexLock lock(mutex_);
  return is_known(user) ? carry_out(step) : carry_out_later(user, done, step);
}

Status PersonalModel::append(std::span<const std::byte> record, UserChange change, Done& at_once) {
  const Result<uint64_t> number = log_->append(record);
  if (!number.ok()) {
    release_items(change);
    return number.status();
  }
  change.number = *number;
  if (options_.durability_is_async) at_once = std::exchange(change.done, nullptr);
  if (memory_ != nullptr) memory_->pin(change.user, change.observations.size());
  const bool is_known = !users_.observations(change.user).empty();
  waiting_.push(std::move(change), is_known);
  return Status();
}

void PersonalModel::apply(const UserChange& change, bool is_live) {
  last_number_ = change.number;
  observations_since_snapshot_ += std::max<size_t>(1, change.observations.size());
  if (change.forgets) {
    const std::span<const UserObservation> known = users_.observations(change.user);
    const std::vector<UserObservation> gone(known.begin(), counts_items_ ? known.end() : known.begin());
    const std::optional<uint32_t> place = users_.remove(change.user, change.number);
    if (!place) return;
    weights_->remove(*place);
    if (next_ != nullptr) next_->remove(*place);
    if (memory_ != nullptr) memory_->on_removed(*place, change.user);
    stop_using(gone);
    return;
  }
  const ComputedItems* const served = weights_->version().computed.get();
  for (size_t i = 0; i < change.items.size(); ++i) {
    known_items_.keep(change.items[i].item, change.items[i].input);
    // Another version that was swapped in meanwhile was made with these items.
    if (change.by == nullptr || change.by.get() != served) continue;
    const size_t width = change.by->width();
    change.by->add(change.items[i].item, std::span(change.features).subspan(i * width, width));
  }
  size_t before = users_.observations(change.user).size();
  bool was_older = false;
  std::vector<UserObservation> older;
  if (counts_items_ && change.generation) {
    const std::span<const UserObservation> known = users_.observations(change.user);
    older.assign(known.begin(), known.end());
  }
  // The population has the observations in a moment, and with it the prior of a user that is new.
  std::vector<float> known;
  if (is_live && !change.generation) {
    const std::span<const float> weights = weights_->settled_weights(change.user);
    known.assign(weights.begin(), weights.end());
  }
  const uint32_t place =
      change.generation ? users_.merge(change.user, change.number, *change.generation, change.observations, was_older)
                        : users_.add(change.user, change.number, change.observations);
  if (was_older) {
    before = 0;
    weights_->remove(place);
    if (next_ != nullptr) next_->remove(place);
    stop_using(older);
  }
  if (memory_ != nullptr) memory_->on_changed(place);
  if (memory_ != nullptr && was_older) memory_->on_forgotten(place);
  const ObservationTable::User& user = users_.user(place);
  for (size_t i = before; i < user.observations.size(); ++i) {
    if (counts_items_) known_items_.use(user.observations[i].item);
    if (is_live && !change.generation) record_loss(place, i, known);  // of a copy: where it was observed
    if (user.observations[i].is_withheld()) add_to_pool(user, i);
  }
  if (is_live && !change.generation && weights_->unsettled(place) >= kUnsettledMax) weights_->settle(place);
}

void PersonalModel::record_loss(uint32_t place, size_t index, std::span<const float> weights) {
  const UserObservation& observation = users_.user(place).observations[index];
  const std::optional<std::span<const float>> features = weights_->items().features_of(observation.item);
  if (!features) return;  // a swap has removed it meanwhile
  // One that several users have not seen says nothing of the items.
  if (!value_range().contains(observation.value)) return;
  const double error = product(*features, weights) - observation.value;
  losses_.overall.record(error * error);
  if (observation.is_of_pool()) losses_.pool.record(error * error);
  losses_.drift.record(index, error * error);
  weights_->record_loss(place, error * error);
}

void PersonalModel::add_to_pool(const ObservationTable::User& user, size_t index) {
  pool_.push_back({user.id, user.first_number, index});
  if (pool_.size() > kPoolMax) pool_.pop_front();
}

void PersonalModel::on_written(uint64_t, uint64_t last, const Status& status) {
  std::vector<Done> answers;
  MutexLock lock(mutex_);
  while (!waiting_.empty() && waiting_.front().number <= last) {
    UserChange change = waiting_.pop();
    if (status.ok()) apply(change, true);
    release_items(change);
    if (memory_ != nullptr) memory_->unpin(change.user, change.observations.size());
    if (change.done) answers.push_back(std::move(change.done));
  }
  const bool is_due = observations_since_snapshot_ >= options_.observations_per_snapshot;
  if (is_due) observations_since_snapshot_ = 0;
  lock.unlock();
  for (const Done& answer : answers) answer(status);
  if (is_due) log_->request_snapshot();
}

size_t PersonalModel::users() {
  const MutexLock lock(mutex_);
  return count_users();
}

std::vector<UserObservation> PersonalModel::observations(uint64_t user) {
  MutexLock lock(mutex_);
  if (!load(user).ok()) return {};
  const std::span<const UserObservation> all = users_.observations(user);
  return {all.begin(), all.end()};
}

std::optional<UserMemory::Statistics> PersonalModel::memory() {
  const MutexLock lock(mutex_);
  return memory_ == nullptr ? std::nullopt : std::optional(memory_->statistics());
}

uint64_t PersonalModel::snapshots() {
  const MutexLock lock(mutex_);
  return snapshots_;
}

std::string PersonalModel::version() {
  const MutexLock lock(mutex_);
  return weights_->version().name;
}

std::optional<RunningLoss> PersonalModel::loss(uint64_t user) {
  MutexLock lock(mutex_);
  if (!load(user).ok()) return std::nullopt;
  const std::optional<uint32_t> place = users_.find(user);
  return place ? std::optional(weights_->loss(*place)) : std::nullopt;
}

PersonalStatistics PersonalModel::statistics() {
  const MutexLock lock(mutex_);
  PersonalStatistics statistics{.version = weights_->version().name,
                                .users = count_users(),
                                .observations = losses_.overall.count(),
                                .log_number = last_number_,
                                .trained_number = weights_->version().log_number,
                                .withheld = pool_.size(),
                                .overall = losses_.overall,
                                .pool = losses_.pool,
                                .held_out = weights_->held_out(),
                                .range = value_range(),
                                .outside = outside_,
                                .users_outside = options_.table.learns_range ? users_.population().users_outside() : 0,
                                .has_drifted = losses_.drift.is_found(),
                                .finds_drift = losses_.drift.is_calibrated(),
                                .corrections = weights_->corrections(),
                                .builds = weights_->builds(),
                                .cached_lists = cached_lists_};
  statistics.retrain = why_retrain(statistics, options_.retrain);
  return statistics;
}

}  // namespace foliot
