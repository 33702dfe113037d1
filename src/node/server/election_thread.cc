#include "node/server/election_thread.h"

#include <fmt/format.h>

#include <utility>

#include "foundation/platform/clock.h"

namespace foliot {

ElectionThread::ElectionThread(ElectionOptions options, std::unique_ptr<LeaderStore> store, Watch watch)
    : options_(options), store_(std::move(store)), watch_(std::move(watch)), election_(std::move(options)) {}

Status ElectionThread::start() {
  FOLIOT_ASSIGN_OR_RETURN(thread_, Thread::start({.name = "election"}, [this] { run(); }));
  return Status();
}

bool ElectionThread::stop() {
  bool led = false;
  {
    const MutexLock lock(mutex_);
    if (std::exchange(stopping_, true)) return false;
    led = election_.epoch().has_value();
    election_.resign(monotonic_now());
    changed_now_ = true;
  }
  changed_.notify_all();
  thread_.join();
  return led;
}

void ElectionThread::on_epoch_seen(uint64_t epoch) {
  {
    const MutexLock lock(mutex_);
    election_.on_epoch_seen(epoch, monotonic_now());
    changed_now_ = true;
  }
  changed_.notify_all();
}

void ElectionThread::on_workers(size_t count) {
  const MutexLock lock(mutex_);
  election_.on_workers(count, monotonic_now());
}

// While it stops, no longer than for what is to be called at once.
std::optional<Election::Call> ElectionThread::wait_for_call() {
  MutexLock lock(mutex_);
  changed_now_ = false;
  const TimePoint now = monotonic_now();
  if (auto call = election_.next(now)) return call;
  if (stopping_) return std::nullopt;
  const Duration pause = std::min(election_.wake() - now, options_.renew_interval);
  changed_.wait_for(mutex_, pause, [this]() REQUIRES(mutex_) { return changed_now_; });
  return election_.next(monotonic_now());
}

void ElectionThread::run() {
  while (true) {
    if (const auto call = wait_for_call()) {
      report(make(*call));
    } else {
      const MutexLock lock(mutex_);
      if (stopping_ && election_.wake().is_infinite()) return;
    }
    report_leader();
  }
}

Status ElectionThread::make(const Election::Call& call) {
  if (call.kind == Election::Kind::kRead) {
    const Result<StoredLeader> read = store_->read();
    const MutexLock lock(mutex_);
    election_.on_read(read, monotonic_now());
    return read.ok() ? Status() : read.status();
  }
  const Result<std::optional<std::string>> swapped = store_->swap(call.version, call.record);
  const MutexLock lock(mutex_);
  election_.on_swap(swapped, monotonic_now());
  return swapped.ok() ? Status() : swapped.status();
}

// The same trouble comes several times a second.
void ElectionThread::report(const Status& called) {
  if (called.ok() && !trouble_.empty()) {
    watch_.log(Severity::kInfo, fmt::format("election: {} answers again", store_->place()));
    trouble_.clear();
  }
  if (called.ok() || called.message() == trouble_) return;
  trouble_ = called.message();
  watch_.log(Severity::kWarning, fmt::format("election: {}; {}", trouble_,
                                             led_ ? "this controller leads on, and no other can take over meanwhile"
                                                  : "this controller cannot lead meanwhile"));
}

void ElectionThread::report_leader() {
  std::optional<uint64_t> leads;
  std::string leader;
  bool shares_address = false;
  {
    const MutexLock lock(mutex_);
    leads = election_.epoch();
    if (election_.record()) leader = election_.record()->address;
    shares_address = election_.shares_address();
  }
  if (led_ && leads != led_) {
    watch_.log(Severity::kWarning,
               fmt::format("election: this controller led with epoch {}, and leads no longer", *led_));
    watch_.on_stand_by();
  }
  if (leads && leads != led_) {
    watch_.log(Severity::kInfo,
               fmt::format("election: this controller leads with epoch {}, by {}", *leads, store_->place()));
    watch_.on_lead(*leads);
  }
  led_ = leads;
  if (leads || leader == leader_ || leader.empty()) return;
  leader_ = leader;
  watch_.log(shares_address ? Severity::kWarning : Severity::kInfo,
             shares_address
                 ? fmt::format("election: another process leads that advertises {}, too; give each its own --advertise",
                               leader)
                 : fmt::format("election: the controller at {} leads, this one stands by", leader));
}

}  // namespace foliot
