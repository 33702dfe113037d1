#include "foundation/store/simulated_user_store.h"

#include <utility>

namespace foliot {
namespace {

Status failed(const char* what) { return Status::internal(std::string("the simulated store cannot ") + what); }

}  // namespace

Status SimulatedUserStore::begin_write() {
  if (drawn(faults_.disk_full)) writes_until_space_ = 1 + random_.below(5);
  if (writes_until_space_ > 0) {
    --writes_until_space_;
    return Status::resource_exhausted("the disk of the simulated store is full");
  }
  return drawn(faults_.failed_write) ? failed("write") : Status();
}

void SimulatedUserStore::apply(const Unflushed& change, State& state) {
  for (const Write& write : change.writes) {
    if (write.bytes) {
      state.values.insert_or_assign(write.user, *write.bytes);
    } else {
      state.values.erase(write.user);
    }
  }
  if (change.note) state.note = *change.note;
}

void SimulatedUserStore::add(Unflushed change) {
  apply(change, now_);
  unflushed_.push_back(std::move(change));
}

Result<std::optional<UserStore::Bytes>> SimulatedUserStore::get(uint64_t user) {
  const MutexLock lock(mutex_);
  ++reads_;
  if (drawn(faults_.failed_read) || damaged_.contains(user)) return failed("read");
  const auto found = now_.values.find(user);
  return found == now_.values.end() ? std::optional<Bytes>() : std::optional<Bytes>(found->second);
}

Status SimulatedUserStore::write(std::span<const Write> writes) {
  const MutexLock lock(mutex_);
  FOLIOT_RETURN_IF_ERROR(begin_write());
  for (const Write& write : writes) {
    damaged_.erase(write.user);
    if (!write.bytes && now_.values.contains(write.user)) left_.insert(write.user);
  }
  add({.writes = {writes.begin(), writes.end()}});
  return Status();
}

Result<std::vector<UserStore::Value>> SimulatedUserStore::scan(std::optional<uint64_t> after, size_t bytes_max) {
  const MutexLock lock(mutex_);
  if (drawn(faults_.failed_read)) return failed("read");
  std::vector<Value> values;
  size_t bytes = 0;
  for (auto next = after ? now_.values.upper_bound(*after) : now_.values.begin(); next != now_.values.end(); ++next) {
    if (damaged_.contains(next->first)) return failed("read");
    bytes += next->second.size();
    if (!values.empty() && bytes > bytes_max) break;
    values.push_back({next->first, next->second});
  }
  return values;
}

Status SimulatedUserStore::flush() {
  const MutexLock lock(mutex_);
  FOLIOT_RETURN_IF_ERROR(begin_write());
  flushed_ = now_;
  unflushed_.clear();
  return Status();
}

Status SimulatedUserStore::purge(std::span<const uint64_t> users) {
  FOLIOT_RETURN_IF_ERROR(flush());
  const MutexLock lock(mutex_);
  for (const uint64_t user : users) left_.erase(user);
  return Status();
}

Status SimulatedUserStore::clear() {
  const MutexLock lock(mutex_);
  FOLIOT_RETURN_IF_ERROR(begin_write());
  now_ = flushed_ = State();
  unflushed_.clear();
  left_.clear();
  damaged_.clear();
  return Status();
}

Result<std::optional<UserStore::Bytes>> SimulatedUserStore::note() {
  const MutexLock lock(mutex_);
  if (drawn(faults_.failed_read)) return failed("read");
  return now_.note;
}

Status SimulatedUserStore::set_note(std::optional<Bytes> note) {
  const MutexLock lock(mutex_);
  FOLIOT_RETURN_IF_ERROR(begin_write());
  add({.note = std::move(note)});
  return Status();
}

void SimulatedUserStore::crash() {
  const MutexLock lock(mutex_);
  const uint64_t kept = random_.below(unflushed_.size() + 1);
  for (uint64_t i = 0; i < kept; ++i) apply(unflushed_[i], flushed_);
  now_ = flushed_;
  unflushed_.clear();
}

}  // namespace foliot
