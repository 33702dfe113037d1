#include "personal/personal_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "personal/cholesky.h"
#include "personal/item_input.h"
#include "personal/user_records.h"

namespace foliot {
namespace {

Status check_options(const PersonalModel::Options& options) {
  const auto wrong = [](const char* name, double value, const char* limit) {
    return Status::invalid_argument(fmt::format("{} = {}: must be {}", name, value, limit));
  };
  const float lambda = options.table.lambda;
  if (!(lambda > 0) || !std::isfinite(lambda)) return wrong("lambda", lambda, "above 0 and finite");
  if (options.table.factors_max == 0) return wrong("factors_max", 0, "at least 1");
  const Exploration& exploration = options.exploration;
  if (!(exploration.epsilon >= 0 && exploration.epsilon <= 1)) return wrong("epsilon", exploration.epsilon, "0 to 1");
  if (!(exploration.pool >= 0 && exploration.pool <= 1)) return wrong("pool", exploration.pool, "0 to 1");
  if (!(exploration.alpha >= 0)) return wrong("alpha", exploration.alpha, "0 or more");
  if (!(exploration.deviation >= 0)) return wrong("deviation", exploration.deviation, "0 or more");
  if (!(options.value_min < options.value_max)) return wrong("value_min", options.value_min, "below value_max");
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

Result<std::unique_ptr<PersonalModel>> PersonalModel::open(std::unique_ptr<Storage> storage, PersonalVersion version,
                                                           const Options& options) {
  FOLIOT_RETURN_IF_ERROR(check_options(options));
  FOLIOT_RETURN_IF_ERROR(version.check());
  std::unique_ptr<PersonalModel> model(new PersonalModel(std::move(version), options));
  FOLIOT_ASSIGN_OR_RETURN(
      model->log_,
      RecordLog::open(std::move(storage), {.limits = options.log, .seed = options.seed}, *model, *model, *model));
  const std::lock_guard lock(model->mutex_);
  model->last_number_ = std::max(model->last_number_, model->log_->last_at_open());
  model->count_items();
  return model;
}

PersonalModel::~PersonalModel() = default;

Result<UserPrediction> PersonalModel::predict(uint64_t user, uint64_t item) {
  const std::lock_guard lock(mutex_);
  const std::optional<std::span<const float>> features = weights_->items().features_of(item);
  if (!features) return unknown_item(item);
  UserPrediction prediction{.observations = users_.observations(user).size(), .version = weights_->version().name};
  prediction.value = product(*features, weights_->weights(user));
  return prediction;
}

Result<UserPrediction> PersonalModel::predict(uint64_t user, const ComputedRows& rows, size_t index) {
  const std::lock_guard lock(mutex_);
  if (!is_served(rows)) return other_version();
  UserPrediction prediction{.observations = users_.observations(user).size(), .version = weights_->version().name};
  prediction.value = product(rows.row(index), weights_->weights(user));
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
    const std::lock_guard lock(mutex_);
    lists_.insert(*ranking.key, *ranking.best);
  }
  result.places = explore(options_.exploration, rows, ranking.weights, factor, k, candidates, ranking.random,
                          ranking.best ? &*ranking.best : nullptr);
  if (std::any_of(result.places.begin(), result.places.end(), [](const ScoredItem& one) { return one.is_drawn; })) {
    const std::lock_guard lock(mutex_);
    for (const ScoredItem& one : result.places) {
      if (one.is_drawn) drawn_.add(result.query, user, one.item, one.probability);
    }
  }
  return result;
}

Result<TopK> PersonalModel::top_k(uint64_t user, std::span<const uint64_t> items, size_t k) {
  FOLIOT_RETURN_IF_ERROR(check_places(k));
  std::unique_lock lock(mutex_);
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
  std::unique_lock lock(mutex_);
  if (!is_served(rows)) return other_version();
  Ranking ranking = rank(user, 0);
  lock.unlock();
  return rank(user, std::move(ranking), {rows.items, rows.values, rows.by->width()}, nullptr, k);
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
  std::unique_lock lock(mutex_);
  const std::shared_ptr<const ItemTable> items = weights_->version().items;
  lock.unlock();
  for (const UserObservation& observation : observations) {
    if (items == nullptr || !items->find(observation.item)) return unknown_item(observation.item);
  }
  FOLIOT_RETURN_IF_ERROR(check_observations(observations));
  Change change{.user = user, .observations = {observations.begin(), observations.end()}, .done = std::move(done)};
  lock.lock();
  return record(std::move(change), query, lock);
}

Status PersonalModel::observe(uint64_t user, std::span<const UserObservation> observations, const ComputedRows& rows,
                              std::span<const size_t> places, Done done, uint64_t query) {
  FOLIOT_RETURN_IF_ERROR(check_observations(observations));
  Change change{.user = user, .observations = {observations.begin(), observations.end()}, .done = std::move(done)};
  std::unique_lock lock(mutex_);
  if (!is_served(rows)) return other_version();
  FOLIOT_RETURN_IF_ERROR(claim_items(rows, places, change));
  return record(std::move(change), query, lock);
}

// After an error nothing is claimed.
Status PersonalModel::claim_items(const ComputedRows& rows, std::span<const size_t> places, Change& change) {
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

void PersonalModel::release_items(const Change& change) {
  for (const uint64_t item : change.claims) {
    if (known_items_.release(item)) left_items_.push_back(item);
  }
  drop_features();
}

// Once all records are read: an observation may come after the user was forgotten that brought the item's input.
void PersonalModel::count_items() {
  counts_items_ = weights_->version().computed != nullptr || known_items_.has_kept();
  if (!counts_items_) return;
  for (size_t place = 0; place < users_.places(); ++place) {
    for (const UserObservation& one : users_.user(place).observations) known_items_.use(one.item);
  }
  known_items_.remove_unused();
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

Status PersonalModel::record(Change change, uint64_t query, std::unique_lock<std::mutex>& lock) {
  for (UserObservation& observation : change.observations) {
    observation.value = std::clamp(observation.value, options_.value_min, options_.value_max);
    observation.probability = 0;
  }
  const uint64_t user = change.user;
  const size_t before = users_.observations(user).size();
  if (std::all_of(change.observations.begin(), change.observations.end(),
                  [&](const UserObservation& observation) { return users_.has(user, observation.id); })) {
    release_items(change);
    lock.unlock();
    change.done(Status());
    return Status();
  }
  Status status;
  if (before + change.observations.size() > options_.observations_per_user_max) {
    status =
        Status::resource_exhausted(fmt::format("the user has {} observations, and {} more are over the limit of {}",
                                               before, change.observations.size(), options_.observations_per_user_max));
  } else if (before == 0 && users_.users() >= options_.users_max) {
    status = Status::resource_exhausted(fmt::format("limit of {} users reached; forget some", options_.users_max));
  }
  if (!status.ok()) {
    release_items(change);
    return status;
  }
  for (UserObservation& observation : change.observations) {
    if (query != 0) observation.probability = drawn_.take(query, user, observation.item);
  }
  const std::vector<std::byte> bytes = encode_record(user, change.observations, change.items);
  return append(bytes, std::move(change), lock);
}

ItemInput PersonalModel::input_of(uint64_t item) {
  const std::lock_guard lock(mutex_);
  return known_items_.find(item);
}

std::vector<KnownItem> PersonalModel::begin_version() {
  const std::lock_guard lock(mutex_);
  makes_version_ = true;
  return known_items_.all();
}

void PersonalModel::end_version() {
  const std::lock_guard lock(mutex_);
  makes_version_ = false;
  drop_features();
}

UserDigest PersonalModel::digest_at(const ObservationTable::User& user) const {
  return digest_of(user.id, user.generation, user.observations);
}

std::vector<UserDigest> PersonalModel::digests(size_t& place, size_t count) {
  const std::lock_guard lock(mutex_);
  std::vector<UserDigest> found;
  for (; place < users_.places() && found.size() < count; ++place) {
    if (users_.user(place).is_used) found.push_back(digest_at(users_.user(place)));
  }
  return found;
}

UserDigest PersonalModel::digest(uint64_t user) {
  const std::lock_guard lock(mutex_);
  const std::optional<uint32_t> place = users_.find(user);
  return place ? digest_at(users_.user(*place)) : UserDigest{.user = user};
}

std::vector<std::byte> PersonalModel::copy(uint64_t user) {
  const std::lock_guard lock(mutex_);
  const std::optional<uint32_t> place = users_.find(user);
  if (!place) return {};
  return encode_copy(user, users_.user(*place).generation, users_.user(*place).observations);
}

std::vector<std::byte> PersonalModel::copy(uint64_t user, const std::vector<uint64_t>& ids) {
  const std::lock_guard lock(mutex_);
  const std::optional<uint32_t> place = users_.find(user);
  if (!place) return {};
  std::vector<UserObservation> chosen;
  for (const UserObservation& one : users_.user(*place).observations) {
    if (std::ranges::find(ids, one.id) != ids.end()) chosen.push_back(one);
  }
  return encode_copy(user, users_.user(*place).generation, chosen);
}

Status PersonalModel::merge(std::span<const std::byte> copy, Done done) {
  constexpr size_t kObservationsPerRecord = 16'384;  // far below kRecordBytesMax
  const std::optional<UserRecord> decoded = decode_record(copy);
  if (!decoded || !decoded->generation) return Status::invalid_argument("it is no copy of a user");
  const uint64_t generation = *decoded->generation;
  const std::span<const UserObservation> all = decoded->observations;
  size_t begin = 0;
  do {
    const std::span<const UserObservation> part =
        all.subspan(begin, std::min(kObservationsPerRecord, all.size() - begin));
    begin += part.size();
    Change change{.user = decoded->user, .generation = generation, .observations = {part.begin(), part.end()}};
    change.done = begin == all.size() ? std::move(done) : [](const Status&) {};
    std::unique_lock lock(mutex_);
    FOLIOT_RETURN_IF_ERROR(append(encode_copy(decoded->user, generation, part), std::move(change), lock));
  } while (begin < all.size());
  return Status();
}

void PersonalModel::drop(const UserDigest& digest, Done done) {
  std::unique_lock lock(mutex_);
  const std::optional<uint32_t> place = users_.find(digest.user);
  const bool has_changed =
      !place || digest_at(users_.user(*place)) != digest ||
      std::ranges::any_of(waiting_, [&](const Change& change) { return change.user == digest.user; });
  if (has_changed) {
    lock.unlock();
    return done(Status());
  }
  const Status status =
      append(encode_record(digest.user, {}), {.user = digest.user, .forgets = true, .done = done}, lock);
  if (status.ok()) return;
  lock.unlock();
  done(status);
}

uint64_t PersonalModel::last_generation(uint64_t user) const {
  const std::optional<uint32_t> place = users_.find(user);
  uint64_t last = place ? users_.user(*place).generation : 0;
  for (const Change& change : waiting_) {
    if (change.user == user && change.generation) last = std::max(last, *change.generation);
  }
  return last;
}

Status PersonalModel::forget(uint64_t user, Done done) {
  std::unique_lock lock(mutex_);
  if (options_.is_shared) {
    const uint64_t generation = last_generation(user) + 1;
    return append(encode_copy(user, generation, {}), {.user = user, .generation = generation, .done = std::move(done)},
                  lock);
  }
  const std::vector<std::byte> record = encode_record(user, {});
  return append(record, {.user = user, .forgets = true, .done = std::move(done)}, lock);
}

Status PersonalModel::append(std::span<const std::byte> record, Change change, std::unique_lock<std::mutex>& lock) {
  const Result<uint64_t> number = log_->append(record);
  if (!number.ok()) {
    release_items(change);
    return number.status();
  }
  change.number = *number;
  Done at_once;
  if (options_.durability_is_async) at_once = std::exchange(change.done, nullptr);
  waiting_.push_back(std::move(change));
  lock.unlock();
  if (at_once) at_once(Status());
  return Status();
}

void PersonalModel::apply(const Change& change, bool is_live) {
  last_number_ = change.number;
  observations_since_snapshot_ += std::max<size_t>(1, change.observations.size());
  if (change.forgets) {
    const std::span<const UserObservation> known = users_.observations(change.user);
    const std::vector<UserObservation> gone(known.begin(), counts_items_ ? known.end() : known.begin());
    const std::optional<uint32_t> place = users_.remove(change.user, change.number);
    if (!place) return;
    weights_->remove(*place);
    if (next_ != nullptr) next_->remove(*place);
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
  const uint32_t place =
      change.generation ? users_.merge(change.user, change.number, *change.generation, change.observations, was_older)
                        : users_.add(change.user, change.number, change.observations);
  if (was_older) {
    before = 0;
    weights_->remove(place);
    if (next_ != nullptr) next_->remove(place);
    stop_using(older);
  }
  const ObservationTable::User& user = users_.user(place);
  for (size_t i = before; i < user.observations.size(); ++i) {
    if (counts_items_) known_items_.use(user.observations[i].item);
    if (is_live && !change.generation) record_loss(place, i);  // of a copy: where it was observed
    if (user.observations[i].is_of_pool()) add_to_pool(user, i);
  }
  if (is_live && !change.generation && weights_->unsettled(place) >= kUnsettledMax) weights_->settle(place);
}

void PersonalModel::record_loss(uint32_t place, size_t index) {
  const UserObservation& observation = users_.user(place).observations[index];
  const std::optional<std::span<const float>> features = weights_->items().features_of(observation.item);
  if (!features) return;  // a swap has removed it meanwhile
  const double error = product(*features, weights_->settled_weights(place)) - observation.value;
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
  std::unique_lock lock(mutex_);
  while (!waiting_.empty() && waiting_.front().number <= last) {
    if (status.ok()) apply(waiting_.front(), true);
    release_items(waiting_.front());
    if (waiting_.front().done) answers.push_back(std::move(waiting_.front().done));
    waiting_.pop_front();
  }
  const bool is_due = observations_since_snapshot_ >= options_.observations_per_snapshot;
  if (is_due) observations_since_snapshot_ = 0;
  lock.unlock();
  for (const Done& answer : answers) answer(status);
  if (is_due) log_->request_snapshot();
}

Status PersonalModel::on_snapshot(std::span<const std::byte> piece) {
  if (std::optional<KnownItem> item = decode_item(piece)) {
    known_items_.keep(item->item, std::move(item->input));
    return Status();
  }
  std::optional<StoredUser> stored = decode_user(piece, weights_->fingerprint());
  if (!stored) return Status::internal("a piece of the snapshot is of another format; use the version that wrote it");
  const std::optional<uint32_t> place = users_.restore(std::move(stored->user));
  if (!place) return Status();
  const ObservationTable::User& user = users_.user(*place);
  for (size_t i = 0; i < user.observations.size(); ++i) {
    if (user.observations[i].is_of_pool()) add_to_pool(user, i);
  }
  if (!stored->weights.empty()) weights_->restore(*place, std::move(stored->weights));
  return Status();
}

Status PersonalModel::on_record(uint64_t number, std::span<const std::byte> record) {
  std::optional<UserRecord> decoded = decode_record(record);
  if (!decoded) {
    return Status::internal(fmt::format("record {} is of another format; use the version that wrote it", number));
  }
  apply({.number = number,
         .user = decoded->user,
         .forgets = decoded->observations.empty() && !decoded->generation,
         .generation = decoded->generation,
         .observations = std::move(decoded->observations),
         .items = std::move(decoded->items)},
        false);
  return Status();
}

bool PersonalModel::next_piece(std::vector<std::byte>& piece) {
  const std::lock_guard lock(mutex_);
  // One that comes meanwhile may have a place that was passed: the records after the snapshot's number have it.
  while (next_item_ < known_items_.places()) {
    const std::optional<KnownItem> item = known_items_.at(next_item_++);
    if (!item) continue;
    encode_item(*item, piece);
    return true;
  }
  while (next_place_ < users_.places()) {
    const ObservationTable::User& user = users_.user(next_place_++);
    if (!user.is_used) continue;
    const std::span<const float> weights =
        user.observations.empty() ? std::span<const float>() : weights_->weights(user.id);
    encode_user(user, weights, weights_->fingerprint(), piece);
    return true;
  }
  return false;
}

void PersonalModel::on_snapshot_end(uint64_t, const Status& status) {
  const std::lock_guard lock(mutex_);
  if (status.ok()) ++snapshots_;
}

size_t PersonalModel::users() {
  const std::lock_guard lock(mutex_);
  return users_.users();
}

std::vector<UserObservation> PersonalModel::observations(uint64_t user) {
  const std::lock_guard lock(mutex_);
  const std::span<const UserObservation> all = users_.observations(user);
  return {all.begin(), all.end()};
}

uint64_t PersonalModel::snapshots() {
  const std::lock_guard lock(mutex_);
  return snapshots_;
}

std::string PersonalModel::version() {
  const std::lock_guard lock(mutex_);
  return weights_->version().name;
}

std::optional<RunningLoss> PersonalModel::loss(uint64_t user) {
  const std::lock_guard lock(mutex_);
  const std::optional<uint32_t> place = users_.find(user);
  return place ? std::optional(weights_->loss(*place)) : std::nullopt;
}

PersonalStatistics PersonalModel::statistics() {
  const std::lock_guard lock(mutex_);
  PersonalStatistics statistics{.version = weights_->version().name,
                                .users = users_.users(),
                                .observations = losses_.overall.count(),
                                .log_number = last_number_,
                                .overall = losses_.overall,
                                .pool = losses_.pool,
                                .held_out = weights_->held_out(),
                                .has_drifted = losses_.drift.is_found(),
                                .corrections = weights_->corrections(),
                                .builds = weights_->builds(),
                                .cached_lists = cached_lists_};
  statistics.retrain = why_retrain(statistics, options_.retrain);
  return statistics;
}

Status PersonalModel::swap(PersonalVersion version, PoolCheck check) {
  FOLIOT_RETURN_IF_ERROR(version.check());
  const std::lock_guard swapping(swap_mutex_);
  if (check == PoolCheck::kNotWorse && version.name == rolled_back_) {
    return Status::invalid_argument(
        fmt::format("version {} was rolled back; train another one, or take it without the check", version.name));
  }
  PersonalVersion before = weights_->version();
  FOLIOT_RETURN_IF_ERROR(take(std::move(version), check));
  // Features that were computed are those of a model that is not served any more, and of items that may leave.
  previous_.reset();
  if (before.computed == nullptr) previous_ = std::move(before);
  return Status();
}

Status PersonalModel::rollback() {
  const std::lock_guard swapping(swap_mutex_);
  if (!previous_) return Status::not_found("there is no version to go back to: none was swapped in");
  std::string name = weights_->version().name;
  FOLIOT_RETURN_IF_ERROR(take(*previous_, PoolCheck::kNone));
  rolled_back_ = std::move(name);
  previous_.reset();
  return Status();
}

Status PersonalModel::take(PersonalVersion version, PoolCheck check) {
  auto next = std::make_unique<WeightTable>(users_, std::move(version), options_.table);
  {
    const std::lock_guard lock(mutex_);
    if (next->version().log_number > last_number_) {
      return Status::invalid_argument(fmt::format(
          "version {} was trained on records up to {} of a log, and this one ends at {}; train it on this log",
          next->version().name, next->version().log_number, last_number_));
    }
    next_ = next.get();
  }
  prepare(*next);
  Status status = check == PoolCheck::kNotWorse ? compare_on_pool(*next) : Status();
  const std::lock_guard lock(mutex_);
  next_ = nullptr;
  if (status.ok()) {
    weights_.swap(next);
    losses_ = Losses();
  }
  drop_features();
  return status;
}

std::optional<ObservationTable::User> PersonalModel::user_at(size_t place) {
  const std::lock_guard lock(mutex_);
  if (place >= users_.places() || !users_.user(place).is_used) return std::nullopt;
  return users_.user(place);
}

// Users that come meanwhile, and observations, are brought up to date when they are read.
void PersonalModel::prepare(WeightTable& next) {
  std::vector<float> prior;
  bool has_more = true;
  for (uint32_t place = 0; has_more; ++place) {
    const std::optional<ObservationTable::User> user = user_at(place);
    std::unique_lock lock(mutex_);
    has_more = place + 1 < users_.places();
    if (!user || user->observations.empty()) continue;
    const bool needs_factor = weights_->has_factor(place);
    if (prior.empty() || place % 64 == 0) prior = next.mean();
    lock.unlock();
    WeightTable::Prepared prepared = next.prepare(*user, prior, needs_factor);
    lock.lock();
    const ObservationTable::User& now = users_.user(place);
    if (now.is_used && now.first_number == user->first_number) next.store(place, std::move(prepared));
  }
}

// Each observation of the pool is predicted from those before it of its user.
Status PersonalModel::compare_on_pool(const WeightTable& next) {
  std::unique_lock lock(mutex_);
  const std::vector<PoolPlace> pool(pool_.begin(), pool_.end());
  const std::vector<float> prior = weights_->mean();
  const std::vector<float> next_prior = next.mean();
  lock.unlock();
  RunningLoss served_loss;
  RunningLoss next_loss;
  for (const PoolPlace& place : pool) {
    lock.lock();
    const std::optional<uint32_t> found = users_.find(place.user);
    std::optional<ObservationTable::User> user;
    if (found && users_.user(*found).first_number == place.first_number) user = users_.user(*found);
    lock.unlock();
    if (!user) continue;
    const UserObservation observation = user->observations[place.index];
    user->observations.resize(place.index);
    const std::optional<double> served = weights_->error(*user, prior, observation);
    const std::optional<double> candidate = next.error(*user, next_prior, observation);
    if (!served || !candidate) continue;
    served_loss.record(*served * *served);
    next_loss.record(*candidate * *candidate);
  }
  if (next_loss.count() < kPoolMin || next_loss.mean() <= served_loss.mean()) return Status();
  return Status::invalid_argument(fmt::format(
      "version {} is worse on the validation pool and was not taken: its loss on {} observations is {:.4g}, "
      "that of version {} {:.4g}",
      next.version().name, next_loss.count(), next_loss.mean(), weights_->version().name, served_loss.mean()));
}

}  // namespace foliot
