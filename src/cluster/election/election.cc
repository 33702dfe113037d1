#include "cluster/election/election.h"

#include <algorithm>
#include <utility>

#include "foundation/base/check.h"

namespace foliot {
namespace {

// Workers of a leader that was restarted are back sooner than after so many timeouts.
constexpr int64_t kIdleTimeouts = 2;

}  // namespace

std::optional<Election::Call> Election::next(TimePoint now) {
  if (epoch_ && had_workers_ && workers_ == 0 && now - workerless_since_ >= options_.leader_timeout) {
    resigning_ = true;
    stand_by(now);
  }
  if (call_ || now < next_call_ || (retired_ && !resigning_)) return std::nullopt;
  call_began_ = now;
  call_ = wanted();
  return call_;
}

Election::Call Election::wanted() const {
  if (resigning_) {
    LeaderRecord resigned = last_.record.value_or(LeaderRecord{.epoch = floor_, .instance = options_.instance});
    resigned.address.clear();
    ++resigned.renewal;
    return {Kind::kResign, last_.version, resigned};
  }
  if (epoch_ && version_known_) {
    return {Kind::kRenew, last_.version, {options_.address, *epoch_, renewal_ + 1, options_.instance, workers_ > 0}};
  }
  if (stands_) return {Kind::kTake, last_.version, {options_.address, floor_ + 1, 0, options_.instance, workers_ > 0}};
  return {};
}

TimePoint Election::wake() const {
  if (call_ || (retired_ && !resigning_)) return TimePoint::infinite_future();
  return next_call_;
}

void Election::on_read(const Result<StoredLeader>& result, TimePoint now) {
  FOLIOT_CHECK(call_ && call_->kind == Kind::kRead);
  call_.reset();
  next_call_ = std::max(now, call_began_ + (epoch_ ? options_.renew_interval : options_.watch_interval));
  if (!result.ok()) return;
  if (result->record) floor_ = std::max(floor_, result->record->epoch);
  epoch_ ? on_record_of_leader(*result, now) : on_record_of_standby(*result, call_began_, now);
}

void Election::on_record_of_leader(const StoredLeader& stored, TimePoint now) {
  last_ = stored;
  const bool own = stored.record && stored.record->instance == options_.instance;
  // Above its own epoch another leads, or has led; at its own, the store has forgotten, and another began anew.
  if (stored.record && (stored.record->epoch > *epoch_ || (stored.record->epoch == *epoch_ && !own))) {
    return stand_by(now);
  }
  if (own) renewal_ = std::max(renewal_, stored.record->renewal);
  version_known_ = true;
  next_call_ = now;
}

void Election::on_record_of_standby(const StoredLeader& stored, TimePoint began, TimePoint now) {
  const bool paused = !last_seen_ || now - *last_seen_ > options_.leader_timeout / 2;
  if (paused || stored.record != last_.record) unchanged_since_ = now;
  const bool idle = stored.record && !stored.record->address.empty() && !stored.record->serves;
  if (paused || !idle) idle_since_.reset();
  if (idle && !idle_since_) idle_since_ = now;
  last_ = stored;
  last_seen_ = began;
  stands_ = may_lead(began);
  fresh_ = false;
  if (stands_) next_call_ = now;
}

bool Election::may_lead(TimePoint seen) const {
  // Without workers it is the worse choice, and waits for a better one.
  const Duration wait = options_.leader_timeout + (workers_ == 0 ? options_.leader_timeout / 2 : Duration());
  if (seen - unchanged_since_ >= wait) return true;
  if (workers_ > 0 && idle_since_ && seen - *idle_since_ >= options_.leader_timeout * kIdleTimeouts) return true;
  if (!last_.record) return false;
  if (last_.record->address.empty()) return workers_ > 0;
  // What it swapped in without receiving the answer, or led with until a peer knew of a higher epoch.
  if (last_.record->instance == options_.instance) return true;
  return fresh_ && last_.record->address == options_.address;
}

void Election::on_swap(const Result<std::optional<std::string>>& result, TimePoint now) {
  FOLIOT_CHECK(call_ && call_->kind != Kind::kRead);
  const Call call = *std::exchange(call_, std::nullopt);
  if (call.kind == Kind::kResign) resigning_ = false;  // one attempt: without it others wait for the timeout
  version_known_ = false;
  stands_ = false;
  // After a failure the store is asked what is there, but not in a hurry.
  next_call_ = result.ok() ? now : std::max(now, call_began_ + options_.watch_interval);
  if (!result.ok() || !result->has_value()) {
    unchanged_since_ = now;
    return;
  }
  last_ = {call.record, **result};
  floor_ = std::max(floor_, call.record.epoch);
  if (call.kind == Kind::kResign) {
    unchanged_since_ = now;
    return;
  }
  // It may have resigned meanwhile, or a peer may know of a higher epoch.
  if (call.kind == Kind::kTake && !retired_ && floor_ == call.record.epoch) {
    epoch_ = call.record.epoch;
    had_workers_ = workers_ > 0;
    workerless_since_ = now;
  }
  if (epoch_ != call.record.epoch) return;
  renewal_ = call.record.renewal;
  version_known_ = true;
  next_call_ = call_began_ + options_.renew_interval;
}

void Election::on_epoch_seen(uint64_t epoch, TimePoint now) {
  floor_ = std::max(floor_, epoch);
  if (epoch_ && floor_ > *epoch_) stand_by(now);
}

void Election::on_workers(size_t count, TimePoint now) {
  if (count == 0 && workers_ > 0) workerless_since_ = now;
  workers_ = count;
  had_workers_ = had_workers_ || count > 0;
}

void Election::resign(TimePoint now) {
  retired_ = true;
  if (!epoch_) return;
  resigning_ = true;
  stand_by(now);
}

void Election::stand_by(TimePoint now) {
  epoch_.reset();
  version_known_ = false;
  stands_ = false;
  fresh_ = false;
  last_seen_ = now;
  unchanged_since_ = now;
  idle_since_.reset();
  next_call_ = now;
}

bool Election::shares_address() const {
  return last_.record && last_.record->address == options_.address && last_.record->instance != options_.instance;
}

}  // namespace foliot
