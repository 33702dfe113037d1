// PersonalModel: what its log has at the start, and what it writes into snapshots.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "answer/personal/service/personal_model.h"
#include "answer/personal/storage/user_records.h"

namespace foliot {

bool PersonalModel::on_begin(const LogContents& contents) {
  if (memory_ == nullptr) return true;
  const MutexLock lock(mutex_);
  const Result<std::optional<UserNote>> begun = memory_->begin(contents);
  open_status_ = begun.status();
  const std::optional<UserNote> note = begun.ok() ? *begun : std::nullopt;
  const bool has_weights = note && note->fingerprint == weights_->fingerprint();
  memory_->serve(*weights_, has_weights ? std::optional(note->table) : std::nullopt);
  if (!note) return true;
  users_.restore_population(Population(note->population));
  stored_number_ = last_number_ = note->number;
  pool_.assign(note->pool.begin(), note->pool.end());
  counts_items_ = note->counts_items;
  return counts_items_;  // they are in the snapshot
}

Status PersonalModel::on_snapshot(std::span<const std::byte> piece) {
  const MutexLock lock(mutex_);
  FOLIOT_RETURN_IF_ERROR(open_status_);
  if (std::optional<KnownItem> item = decode_item(piece)) {
    known_items_.keep(item->item, std::move(item->input));
    return Status();
  }
  if (stored_number_) return Status();
  std::optional<ObservationTable::User> stored = decode_user(piece);
  if (!stored) return Status::internal("a piece of the snapshot is of another format; use the version that wrote it");
  FOLIOT_RETURN_IF_ERROR(load(stored->id));
  const std::optional<uint32_t> place = users_.restore(*std::move(stored));
  if (!place) return Status();
  const ObservationTable::User& user = users_.user(*place);
  for (size_t i = 0; i < user.observations.size(); ++i) {
    if (user.observations[i].is_withheld()) add_to_pool(user, i);
  }
  if (memory_ == nullptr) return Status();
  memory_->on_changed(*place);
  return memory_->make_room();
}

Status PersonalModel::on_record(uint64_t number, std::span<const std::byte> record) {
  const MutexLock lock(mutex_);
  FOLIOT_RETURN_IF_ERROR(open_status_);
  std::optional<UserRecord> decoded = decode_record(record);
  if (!decoded) {
    return Status::internal(fmt::format("record {} is of another format; use the version that wrote it", number));
  }
  if (number <= stored_number_.value_or(0)) {
    for (KnownItem& item : decoded->items) known_items_.keep(item.item, std::move(item.input));
    observations_since_snapshot_ += std::max<size_t>(1, decoded->observations.size());
    return Status();
  }
  FOLIOT_RETURN_IF_ERROR(load(decoded->user));
  apply({.number = number,
         .user = decoded->user,
         .forgets = decoded->observations.empty() && !decoded->generation,
         .generation = decoded->generation,
         .observations = std::move(decoded->observations),
         .items = std::move(decoded->items)},
        false);
  return memory_ == nullptr ? Status() : memory_->make_room();
}

void PersonalModel::on_snapshot_begin() {
  const MutexLock lock(mutex_);
  next_place_ = next_item_ = 0;
  stored_pieces_.clear();
  if (memory_ != nullptr) next_stored_ = memory_->begin_pass();
}

Result<bool> PersonalModel::next_piece(std::vector<std::byte>& piece) {
  MutexLock lock(mutex_);
  // One that comes meanwhile may have a place that was passed: the records after the snapshot's number have it.
  while (next_item_ < known_items_.places()) {
    const std::optional<KnownItem> item = known_items_.at(next_item_++);
    if (!item) continue;
    encode_item(*item, piece);
    return true;
  }
  while (next_place_ < users_.places()) {
    const auto place = static_cast<uint32_t>(next_place_++);
    const ObservationTable::User& user = users_.user(place);
    if (!user.is_used) continue;
    if (memory_ != nullptr) memory_->visit(place, next_stored_);
    encode_user(user, piece);
    return true;
  }
  while (memory_ != nullptr && stored_pieces_.empty() && !next_stored_.is_at_end) {
    FOLIOT_RETURN_IF_ERROR(read_stored_pieces());
  }
  if (stored_pieces_.empty()) return false;
  piece = std::move(stored_pieces_.front());
  stored_pieces_.pop_front();
  return true;
}

Status PersonalModel::read_stored_pieces() {
  FOLIOT_ASSIGN_OR_RETURN(const UserMemory::Scanned scanned, memory_->scan(next_stored_, SIZE_MAX));
  const auto add = [this](const ObservationTable::User& user)
                       REQUIRES(mutex_) { encode_user(user, stored_pieces_.emplace_back()); };
  for (const uint32_t place : scanned.places) add(users_.user(place));
  for (const UserValue& value : scanned.away) add(value.user);
  return Status();
}

void PersonalModel::on_snapshot_end(uint64_t, const Status& status) {
  const MutexLock lock(mutex_);
  if (!status.ok()) return;
  ++snapshots_;
  if (memory_ != nullptr) memory_->request_purge();
}

}  // namespace foliot
