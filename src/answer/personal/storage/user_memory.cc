#include "answer/personal/storage/user_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "foundation/base/check.h"

namespace foliot {
namespace {

// Beside observations and weights: places, entries and indexes.
constexpr uint64_t kBytesOfUser = 320;
constexpr size_t kBatchBytes = 256 << 10;
constexpr size_t kBatchUsers = 256;
// Reads wait for users whose weights are being made.
constexpr size_t kPreparedBytes = 16 << 10;
constexpr size_t kErasedMax = 1024;  // are written without waiting for a snapshot

}  // namespace

// ---- Opening and closing

Result<std::optional<UserNote>> UserMemory::begin(const LogContents& contents) {
  mutex_.assert_held();
  const Result<std::optional<UserStore::Bytes>> bytes = store_->note();
  std::optional<UserNote> note;
  std::string wrong;
  if (!bytes.ok()) {
    wrong = bytes.status().message();
  } else if (!*bytes) {
    const auto first = store_->scan({}, 1);
    if (first.ok() && first->empty()) return std::optional<UserNote>();
    wrong = "it was not closed";
  } else if (note = decode_note(**bytes); !note) {
    wrong = "another version of Foliot wrote it";
  } else if (!(note->salt == 0 && contents.salts.empty()) &&
             std::ranges::find(contents.salts, note->salt) == contents.salts.end()) {
    wrong = "it is of another log";
  } else if (note->number < contents.snapshot_number) {
    wrong = fmt::format("it ends at record {}, and the log's snapshot at {}", note->number, contents.snapshot_number);
  }
  if (!wrong.empty()) {
    options_.on_failure(fmt::format("the store of users is filled anew from the log: {}", wrong));
    FOLIOT_RETURN_IF_ERROR(clear());
    return std::optional<UserNote>();
  }
  FOLIOT_RETURN_IF_ERROR(store_->set_note({}));
  away_ = note->users;
  last_table_ = note->table;
  start_ = note->start + 1;
  forgotten_ = note->forgotten;
  return note;
}

Status UserMemory::clear() {
  away_ = 0;
  forgotten_.clear();
  return store_->clear();
}

Status UserMemory::start() {
  FOLIOT_ASSIGN_OR_RETURN(thread_, Thread::start({.name = "foliot-users"}, [this] { run(); }));
  FOLIOT_ASSIGN_OR_RETURN(purger_, Thread::start({.name = "foliot-purge", .nice = 19}, [this] { run_purges(); }));
  return Status();
}

void UserMemory::stop() {
  {
    const MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  work_.notify_all();
  unpinned_.notify_all();
  purge_.notify_all();
  thread_.join();
  purger_.join();
  MutexLock lock(mutex_);
  while (!fetches_.empty()) {
    end_fetch(fetches_.begin()->first, Status::unavailable("the personal model is being closed; try again"));
  }
}

Status UserMemory::close(UserNote note) {
  MutexLock lock(mutex_);
  if (is_damaged_) {
    FOLIOT_RETURN_IF_ERROR(store_->clear());
    return Status::internal("a value could not be read");
  }
  Batch batch;
  add_erased(batch);
  for (uint32_t index = 0; index < users_.places(); ++index) {
    const Place& known = place(index);
    const bool is_as_stored = known.is_stored && !known.is_dirty && known.settled == settled(index);
    if (users_.user(index).is_used && !is_as_stored) add(index, batch);
    if (batch.bytes < kBatchBytes) continue;
    FOLIOT_RETURN_IF_ERROR(write(batch));
    batch = Batch();
  }
  FOLIOT_RETURN_IF_ERROR(write(batch));
  note.users = users();
  note.table = served_.number;
  note.start = start_;
  note.forgotten = forgotten_;
  FOLIOT_RETURN_IF_ERROR(store_->set_note(encode_note(note)));
  return store_->flush();
}

// ---- Tables

void UserMemory::serve(WeightTable& served, std::optional<uint64_t> number) {
  mutex_.assert_held();
  served_ = {&served, number.value_or(last_table_ + 1)};
  last_table_ = std::max(last_table_, served_.number);
}

void UserMemory::begin_next(WeightTable& next) {
  mutex_.assert_held();
  next_ = {&next, ++last_table_};
}

void UserMemory::end_next(bool is_served) {
  mutex_.assert_held();
  if (is_served) served_ = next_;
  next_ = {};
}

// ---- Users in memory

UserMemory::Place& UserMemory::place(uint32_t index) {
  if (index >= places_.size()) places_.resize(std::max<size_t>(index + 1, users_.places()));
  return places_[index];
}

uint64_t UserMemory::bytes_of_each() const {
  uint64_t bytes = kBytesOfUser;
  for (const Table& one : {served_, next_}) {
    if (one.table != nullptr) bytes += sizeof(float) * one.table->items().width();
  }
  return bytes;
}

void UserMemory::recount(uint32_t index) {
  Place& known = place(index);
  const uint64_t bytes = users_.user(index).observations.capacity() * sizeof(UserObservation);
  observed_bytes_ += bytes - known.bytes;
  known.bytes = bytes;
}

Status UserMemory::full() const {
  return Status::unavailable(
      fmt::format("users in memory have {} bytes, limit {}, and others cannot take their place: "
                  "{}; try again",
                  used(), options_.bytes_max, write_error_.ok() ? "they wait to be written" : write_error_.message()));
}

Status UserMemory::admit() {
  mutex_.assert_held();
  if (is_crowded()) wake();
  return is_full() && !write_error_.ok() ? full() : Status();
}

UserMemory::Settled UserMemory::settled(uint32_t index) const {
  Settled settled{.table = served_.number, .count = served_.table->settled(index), .next_table = next_.number};
  if (next_.table != nullptr) settled.next_count = next_.table->settled(index);
  return settled;
}

std::vector<std::byte> UserMemory::encode(uint32_t index) const {
  UserValue value{.user = users_.user(index)};
  for (const Table& one : {served_, next_}) {
    if (one.table == nullptr) continue;
    KeptWeights kept = one.table->kept(index);
    if (!kept.weights.empty() || kept.loss.count() > 0) value.tables.push_back({one.number, start_, std::move(kept)});
  }
  return encode_value(value);
}

void UserMemory::insert(UserValue value) {
  FOLIOT_CHECK(!users_.find(value.user.id));
  const uint32_t index = users_.bring_back(std::move(value.user));
  Settled stored{.table = served_.number, .next_table = next_.number};
  for (UserValue::OfTable& of : value.tables) {
    for (const Table& one : {served_, next_}) {
      if (one.table == nullptr || one.number != of.table) continue;
      if (of.start != start_) {  // losses and revisions begin anew with the process
        of.kept.loss = RunningLoss();
        of.kept.revision = 0;
      }
      (one.table == served_.table ? stored.count : stored.next_count) = of.kept.settled;
      one.table->resume(index, std::move(of.kept));
    }
  }
  place(index) = {.was_read = true, .is_stored = true, .settled = stored};
  recount(index);
  --away_;
}

void UserMemory::drop(uint32_t index) {
  observed_bytes_ -= places_[index].bytes;
  places_[index] = {};
  for (const Table& one : {served_, next_}) {
    if (one.table != nullptr) one.table->release(index);
  }
  users_.evict(index);
  ++away_;
}

void UserMemory::on_changed(uint32_t index) {
  mutex_.assert_held();
  Place& known = place(index);
  known.was_read = true;
  known.is_dirty = true;
  ++known.changes;
  recount(index);
  if (is_crowded()) wake();
}

void UserMemory::on_forgotten(uint32_t index) {
  mutex_.assert_held();
  Place& known = place(index);
  if (!known.is_stored && !known.is_writing) return;
  known.is_stored = false;
  const uint64_t user = users_.user(index).id;
  erased_[user] = ++forgettings_;
  forgotten_.push_back(user);
}

void UserMemory::on_removed(uint32_t index, uint64_t user) {
  mutex_.assert_held();
  const Place known = std::exchange(place(index), {});
  observed_bytes_ -= known.bytes;
  if (!known.is_stored && !known.is_writing) return;
  erased_[user] = ++forgettings_;
  forgotten_.push_back(user);
  if (erased_.size() >= kErasedMax) wake();
}

void UserMemory::pin(uint64_t user, size_t observations) {
  mutex_.assert_held();
  ++pins_[user];
  coming_bytes_ += observations * sizeof(UserObservation);
}

void UserMemory::unpin(uint64_t user, size_t observations) {
  mutex_.assert_held();
  uint32_t* const pins = pins_.find(user);
  FOLIOT_CHECK(pins != nullptr && *pins > 0);
  coming_bytes_ -= observations * sizeof(UserObservation);
  if (--*pins > 0) return;
  pins_.erase(user);
  ++unpinned_users_;
  unpinned_.notify_one();
}

// ---- Reading users

bool UserMemory::is_known(uint64_t user) const {
  mutex_.assert_held();
  return !fetches_.contains(user) && (is_here(user) || pins_.find(user) != nullptr);
}

Status UserMemory::load(uint64_t user) {
  mutex_.assert_held();
  while (true) {
    if (const std::optional<uint32_t> index = users_.find(user)) {
      place(*index).was_read = true;
      return Status();
    }
    if (is_known(user)) return Status();
    const auto [fetching, is_new] = fetches_.try_emplace(user);
    if (!is_new && fetching->second.is_begun) {
      fetched_.wait(mutex_);
      continue;
    }
    fetching->second.is_begun = true;
    FOLIOT_ASSIGN_OR_RETURN(const bool has_value, fetch(user));
    // Changes of it that waited may have been answered since, and then it may have left again.
    if (!has_value || users_.find(user)) return Status();
  }
}

Status UserMemory::wait(uint64_t user, Step step) {
  mutex_.assert_held();
  if (waiting_ >= options_.waiting_max) {
    return Status::resource_exhausted(
        fmt::format("{} changes wait for users, limit {}; try again later", waiting_, options_.waiting_max));
  }
  if (is_stopping_) return Status::unavailable("the personal model is being closed; try again");
  ++waiting_;
  const auto [fetching, is_new] = fetches_.try_emplace(user);
  fetching->second.steps.push_back(std::move(step));
  if (!is_new) return Status();
  queue_.push_back(user);
  wake();
  return Status();
}

Status UserMemory::on_read(const Status& status) {
  wants_flush_ = wants_flush_ || !is_damaged_;
  is_damaged_ = true;
  wake();
  return Status::unavailable(fmt::format("the user cannot be read: {}", status.message()));
}

Result<bool> UserMemory::fetch(uint64_t user) {
  if (is_full()) static_cast<void>(evict());
  Status status = is_full() ? full() : Status();
  bool has_value = false;
  if (status.ok() && !is_here(user)) {
    mutex_.unlock();
    Result<std::optional<UserValue>> value = read_value(user);
    mutex_.lock();
    ++misses_;
    if (!value.ok()) {
      status = on_read(value.status());
    } else if (*value) {
      has_value = true;
      insert(**std::move(value));
    }
  }
  if (is_crowded()) wake();
  end_fetch(user, status);
  if (!status.ok()) return status;
  return has_value;
}

Result<std::optional<UserValue>> UserMemory::read_value(uint64_t user) {
  FOLIOT_ASSIGN_OR_RETURN(const std::optional<UserStore::Bytes> bytes, store_->get(user));
  if (!bytes) return std::optional<UserValue>();
  FOLIOT_ASSIGN_OR_RETURN(UserValue value, decode_value(user, *bytes));
  return std::optional(std::move(value));
}

void UserMemory::end_fetch(uint64_t user, const Status& status) {
  const Fetch ended = std::move(fetches_.extract(user).mapped());
  std::vector<Answer> answers;
  for (const Step& step : ended.steps) {
    if (Answer answer = step(status)) answers.push_back(std::move(answer));
  }
  waiting_ -= ended.steps.size();
  fetched_.notify_all();
  if (answers.empty()) return;
  mutex_.unlock();
  for (const Answer& answer : answers) answer();
  mutex_.lock();
}

// ---- Writing users

void UserMemory::wake() {
  has_work_ = true;
  work_.notify_one();
}

void UserMemory::begin_writing() {
  written_.wait(mutex_, [this]() REQUIRES(mutex_) { return !is_writing_; });
  is_writing_ = true;
}

void UserMemory::end_writing() {
  is_writing_ = false;
  written_.notify_all();
}

Status UserMemory::make_room() {
  mutex_.assert_held();
  if (!is_crowded()) return Status();
  static_cast<void>(evict());
  return is_full() ? full() : Status();
}

// Until a change may be made, if that is a matter of time: users are being written, or changes are on their way to the
// log.
void UserMemory::wait_for_room() {
  while (!is_stopping_ && (is_full() || is_over())) {
    if (!evict().ok() || pins_.empty()) return;
    if (!is_full() && !is_over()) return;
    unpinned_.wait(mutex_, [this, before = unpinned_users_]()
                               REQUIRES(mutex_) { return unpinned_users_ != before || is_stopping_; });
  }
}

Status UserMemory::evict() {
  begin_writing();
  Status status;
  while (is_crowded() && status.ok()) {
    const Batch batch = collect();
    if (batch.writes.empty()) break;
    status = write(batch);
  }
  end_writing();
  return status;
}

void UserMemory::add_erased(Batch& batch) const {
  erased_.for_each([&batch](uint64_t user, uint64_t number) {
    batch.erased.emplace_back(user, number);
    batch.writes.push_back({.user = user});
  });
}

void UserMemory::add(uint32_t index, Batch& batch) {
  const ObservationTable::User& user = users_.user(index);
  Place& known = place(index);
  known.is_writing = true;
  batch.users.push_back({index, user.id, user.first_number, known.changes, settled(index)});
  batch.writes.push_back({user.id, encode(index)});
  batch.bytes += batch.writes.back().bytes->size();
}

UserMemory::Batch UserMemory::collect() {
  Batch batch;
  add_erased(batch);
  const auto places = static_cast<uint32_t>(users_.places());
  uint64_t leaving = 0;
  for (uint32_t looks = 0; looks < 2 * places && used() > used_after_eviction() + leaving; ++looks) {
    const uint32_t index = hand_ < places ? hand_ : 0;
    hand_ = index + 1;
    const ObservationTable::User& user = users_.user(index);
    Place& known = place(index);
    if (!user.is_used || known.is_writing || pins_.find(user.id) != nullptr) continue;
    if (std::exchange(known.was_read, false)) continue;
    if (known.is_stored && !known.is_dirty && known.settled == settled(index)) {
      drop(index);
      continue;
    }
    add(index, batch);
    leaving += known.bytes + bytes_of_each();
    if (batch.bytes >= kBatchBytes || batch.users.size() >= kBatchUsers) break;
  }
  return batch;
}

Status UserMemory::write(const Batch& batch) {
  if (batch.writes.empty()) return Status();
  mutex_.unlock();
  Status status = store_->write(batch.writes);
  mutex_.lock();
  end_write(batch, status);
  return status;
}

void UserMemory::end_write(const Batch& batch, const Status& status) {
  const bool is_new_error = !status.ok() && write_error_.ok();
  write_error_ = status;
  for (const auto& [user, number] : batch.erased) {
    const uint64_t* const last = erased_.find(user);
    if (status.ok() && last != nullptr && *last == number) erased_.erase(user);
  }
  for (const Batch::Written& written : batch.users) {
    const std::optional<uint32_t> index = users_.find(written.user);
    // Forgotten meanwhile: what was written is erased by the next batch.
    if (!index || users_.user(*index).first_number != written.first_number) continue;
    Place& known = place(*index);
    known.is_writing = false;
    if (!status.ok() || erased_.find(written.user) != nullptr) continue;
    known.is_stored = true;
    known.settled = written.settled;
    if (known.changes != written.changes) continue;
    known.is_dirty = false;
    const bool may_leave = !known.was_read && pins_.find(written.user) == nullptr && known.settled == settled(*index);
    if (may_leave && used() > used_after_eviction()) drop(*index);
  }
  if (is_new_error) {
    options_.on_failure(
        fmt::format("users that are not used stay in memory, since they cannot be written: {}", status.message()));
  }
}

// ---- All users

Result<UserMemory::Scanned> UserMemory::scan(Cursor& cursor, size_t count, size_t bytes_max) {
  mutex_.assert_held();
  Result<std::vector<UserValue>> values = read_next(cursor, count, bytes_max);
  if (!values.ok()) return on_read(values.status());
  cursor.is_at_end = values->empty();
  if (!values->empty()) cursor.after = values->back().user.id;
  Scanned scanned;
  for (UserValue& value : *values) {
    if (const std::optional<uint32_t> index = users_.find(value.user.id)) {
      if (std::exchange(place(*index).pass, cursor.pass) != cursor.pass) scanned.places.push_back(*index);
    } else if (erased_.find(value.user.id) == nullptr) {
      scanned.away.push_back(std::move(value));
    }
  }
  return scanned;
}

Result<std::vector<UserValue>> UserMemory::read_next(const Cursor& cursor, size_t count, size_t bytes_max) {
  begin_writing();  // what is read stays so
  mutex_.unlock();
  Result<std::vector<UserValue>> values = read_values(cursor.after, count, bytes_max);
  mutex_.lock();
  end_writing();
  return values;
}

Result<std::vector<UserValue>> UserMemory::read_values(std::optional<uint64_t> after, size_t count, size_t bytes_max) {
  FOLIOT_ASSIGN_OR_RETURN(std::vector<UserStore::Value> values, store_->scan(after, bytes_max));
  values.resize(std::min(values.size(), count));
  std::vector<UserValue> decoded;
  decoded.reserve(values.size());
  for (const UserStore::Value& value : values) {
    FOLIOT_ASSIGN_OR_RETURN(decoded.emplace_back(), decode_value(value.user, value.bytes));
  }
  return decoded;
}

// A user that is being read at this moment is left out: its weights are made when they are read.
Status UserMemory::prepare_next() {
  mutex_.assert_held();
  Cursor cursor = begin_pass();
  while (!cursor.is_at_end) {
    FOLIOT_ASSIGN_OR_RETURN(Scanned scanned, scan(cursor, SIZE_MAX, kPreparedBytes));
    std::vector<UserValue> values = std::move(scanned.away);
    std::erase_if(values, [this](const UserValue& value) REQUIRES(mutex_) { return fetches_.contains(value.user.id); });
    for (const UserValue& value : values) fetches_[value.user.id].is_begun = true;
    const Status status = prepare_values(values);
    for (const UserValue& value : values) {
      Fetch& held = fetches_.at(value.user.id);
      held.is_begun = false;
      if (held.steps.empty()) {
        fetches_.erase(value.user.id);
      } else {
        queue_.push_back(value.user.id);
        wake();
      }
    }
    fetched_.notify_all();
    FOLIOT_RETURN_IF_ERROR(status);
  }
  return Status();
}

Status UserMemory::prepare_values(std::span<UserValue> values) {
  const Table next = next_;
  const uint64_t served = served_.number;
  const WeightTable::Prior prior = next.table->prior();
  mutex_.unlock();
  std::vector<UserStore::Write> writes;
  for (UserValue& value : values) {
    if (value.user.observations.empty()) continue;
    WeightTable::Prepared prepared = next.table->prepare(value.user, prior, false);
    std::erase_if(value.tables, [served](const UserValue::OfTable& of) { return of.table != served; });
    value.tables.push_back(
        {next.number,
         start_,
         {.settled = prepared.settled, .revision = prepared.revision, .weights = std::move(prepared.weights)}});
    writes.push_back({value.user.id, encode_value(value)});
  }
  mutex_.lock();
  begin_writing();
  mutex_.unlock();
  const Status status = writes.empty() ? Status() : store_->write(writes);
  mutex_.lock();
  end_writing();
  return status.ok() ? Status() : Status::unavailable(fmt::format("users cannot be written: {}", status.message()));
}

UserMemory::Statistics UserMemory::statistics() const {
  mutex_.assert_held();
  return {.in_memory = users_.users(), .in_store = away_, .misses = misses_, .bytes = used(), .purges = purges_};
}

// ---- Threads

void UserMemory::run() {
  MutexLock lock(mutex_);
  while (true) {
    work_.wait(mutex_, [this]() REQUIRES(mutex_) { return has_work_ || is_stopping_; });
    if (is_stopping_) return;
    has_work_ = false;
    while (!queue_.empty() && !is_stopping_) {
      wait_for_room();
      const uint64_t user = queue_.front();
      queue_.pop_front();
      const auto fetching = fetches_.find(user);
      if (fetching == fetches_.end() || std::exchange(fetching->second.is_begun, true)) continue;
      static_cast<void>(fetch(user));
    }
    if (is_stopping_) return;
    if (is_crowded() || erased_.size() >= kErasedMax) static_cast<void>(evict());
    if (std::exchange(wants_flush_, false)) {
      begin_writing();
      lock.unlock();
      static_cast<void>(store_->flush());  // else close() clears the store
      lock.lock();
      end_writing();
    }
  }
}

void UserMemory::request_purge() {
  mutex_.assert_held();
  wants_purge_ = true;
  purge_.notify_one();
}

void UserMemory::run_purges() {
  MutexLock lock(mutex_);
  while (true) {
    purge_.wait(mutex_, [this]() REQUIRES(mutex_) { return wants_purge_ || is_stopping_; });
    if (is_stopping_) return;
    wants_purge_ = false;
    purge();
  }
}

void UserMemory::purge() {
  std::vector<uint64_t> users = std::exchange(forgotten_, {});
  begin_writing();
  Batch batch;
  add_erased(batch);
  Status status = write(batch);
  end_writing();
  if (status.ok()) {
    mutex_.unlock();
    status = store_->purge(users);
    mutex_.lock();
  }
  if (status.ok()) {
    ++purges_;
    return;
  }
  forgotten_.insert(forgotten_.end(), users.begin(), users.end());
  options_.on_failure(fmt::format("users that were forgotten are still in the store's files: {}", status.message()));
}

}  // namespace foliot
