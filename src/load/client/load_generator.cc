#include "load/client/load_generator.h"

#include <algorithm>
#include <utility>

#include "foundation/base/check.h"
#include "foundation/platform/clock.h"
#include "foundation/platform/thread.h"

namespace foliot {
namespace {

constexpr Duration kWatchInterval = Duration::milliseconds(20);
constexpr Duration kProgressInterval = Duration::seconds(1);
constexpr Duration kStoppedDrainTimeout = Duration::seconds(2);

bool later(const Arrival& a, const Arrival& b) { return a.at > b.at; }

}  // namespace

LoadGenerator::LoadGenerator(LoadPlan plan, LoadReport& report) : plan_(std::move(plan)), report_(report) {
  FOLIOT_CHECK(plan_.source != nullptr && plan_.in_flight_max > 0);
  for (const auto& [asked, variants] : plan_.requests) FOLIOT_CHECK(!variants.empty());
  flights_.resize(plan_.in_flight_max);
  for (size_t i = flights_.size(); i > 0; --i) free_flights_.push_back(static_cast<uint32_t>(i - 1));
}

Status LoadGenerator::run(InferenceClient& client, const LoadHooks& hooks) {
  client_ = &client;
  start_ = monotonic_now();
  measure_from_ = start_ + plan_.warmup;
  end_ = measure_from_ + plan_.duration;
  {
    const MutexLock lock(mutex_);
    next_ = within_run(plan_.source->next());
  }
  FOLIOT_ASSIGN_OR_RETURN(Thread sender, Thread::start({.name = "load-sender"}, [this] { send_what_is_due(); }));
  const bool stopped = !watch(hooks);
  const TimePoint ended_at = std::min(monotonic_now(), end_);
  ended_.store(true);
  sender_parker_.unpark();
  sender.join();
  drain(hooks, stopped);
  client.stop();
  const MutexLock lock(mutex_);
  report_.set_duration(std::max(ended_at - measure_from_, Duration()));
  return Status();
}

// ---- Sending ----

// All that was due before the end, however late it is for it.
void LoadGenerator::send_what_is_due() {
  while (true) {
    const TimePoint due = next_due();
    if (due <= monotonic_now()) {
      if (const auto departure = take_due()) client_->send(departure->request, departure->tag);
    } else if (!ended_.load()) {
      sender_parker_.park_until(due, plan_.spin);
    } else {
      return;
    }
  }
}

TimePoint LoadGenerator::next_due() {
  const MutexLock lock(mutex_);
  TimePoint due = TimePoint::infinite_future();
  if (next_) due = start_ + next_->at;
  if (!users_.empty()) due = std::min(due, start_ + users_.front().at);
  return due;
}

// What next_due() meant; nullopt if there is no room for it.
std::optional<LoadGenerator::Departure> LoadGenerator::take_due() {
  const MutexLock lock(mutex_);
  Arrival arrival;
  if (!users_.empty() && (!next_ || users_.front().at < next_->at)) {
    arrival = users_.front();
    std::pop_heap(users_.begin(), users_.end(), later);
    users_.pop_back();
  } else {
    arrival = *next_;
    next_ = within_run(plan_.source->next());
  }
  if (!free_flights_.empty()) {
    const uint32_t flight = free_flights_.back();
    free_flights_.pop_back();
    return depart(flight, arrival);
  }
  const TimePoint now = monotonic_now();
  record({.arrival = arrival, .sent = now}, now, {.outcome = LoadOutcome::kUnsent});
  if (const auto follower = within_run(plan_.source->follow(arrival, now - start_))) put_back(*follower);
  return std::nullopt;
}

LoadGenerator::Departure LoadGenerator::depart(uint32_t flight, const Arrival& arrival) {
  const std::vector<PreparedRequest>& variants = plan_.requests.at({arrival.model, arrival.slo});
  flights_[flight] = {.arrival = arrival, .sent = monotonic_now()};
  return {.tag = flight, .request = variants[departures_++ % variants.size()]};
}

std::optional<Arrival> LoadGenerator::within_run(std::optional<Arrival> arrival) const {
  return arrival && start_ + arrival->at < end_ ? arrival : std::nullopt;
}

void LoadGenerator::put_back(const Arrival& arrival) {
  users_.push_back(arrival);
  std::push_heap(users_.begin(), users_.end(), later);
}

// ---- Answers ----

void LoadGenerator::on_response(uint64_t tag, const Response& response) {
  const TimePoint now = monotonic_now();
  std::optional<Departure> next;
  bool user_waits = false;
  {
    const MutexLock lock(mutex_);
    const Flight flight = flights_.at(tag);
    switch (response.outcome) {
      case LoadOutcome::kAnswered: ++counts_.answered; break;
      case LoadOutcome::kRefused: ++counts_.refused; break;
      case LoadOutcome::kFailed: ++counts_.failed; break;
      case LoadOutcome::kUnsent: FOLIOT_CHECK(false);
    }
    record(flight, now, response);
    std::optional<Arrival> follower;
    if (!ended_.load()) follower = within_run(plan_.source->follow(flight.arrival, now - start_));
    if (follower && start_ + follower->at <= now) {
      next = depart(static_cast<uint32_t>(tag), *follower);
    } else {
      free_flights_.push_back(static_cast<uint32_t>(tag));
      if (follower) put_back(*follower);
      user_waits = follower.has_value();
    }
  }
  if (next) client_->send(next->request, next->tag);
  if (user_waits) sender_parker_.unpark();
}

void LoadGenerator::record(const Flight& flight, TimePoint finished, const Response& response) {
  const TimePoint scheduled = start_ + flight.arrival.at;
  if (scheduled < measure_from_) return;
  report_.record({.model = flight.arrival.model,
                  .stream = flight.arrival.stream,
                  .scheduled = scheduled,
                  .sent = flight.sent,
                  .finished = finished,
                  .outcome = response.outcome,
                  .reason = response.reason,
                  .slo = flight.arrival.slo});
}

// ---- The run ----

LoadProgress LoadGenerator::progress(TimePoint now) {
  const MutexLock lock(mutex_);
  LoadProgress result = counts_;
  result.elapsed = now - start_;
  result.length = end_ - start_;
  result.warming_up = now < measure_from_;
  result.in_flight = static_cast<uint32_t>(flights_.size() - free_flights_.size());
  return result;
}

bool LoadGenerator::nothing_follows() {
  const MutexLock lock(mutex_);
  return !next_ && users_.empty() && flights_.size() == free_flights_.size();
}

// Shows progress until the time is over or nothing more will come; false if the
// run is to be stopped early.
bool LoadGenerator::watch(const LoadHooks& hooks) {
  Parker parker;  // never woken: only its timeout is used
  TimePoint report_at = start_ + kProgressInterval;
  for (TimePoint now = monotonic_now(); now < end_; now = monotonic_now()) {
    if (hooks.should_stop && hooks.should_stop()) return false;
    if (nothing_follows()) return true;
    if (now >= report_at) {
      if (hooks.on_progress) hooks.on_progress(progress(now));
      report_at += kProgressInterval;
    }
    parker.park_until(std::min(now + kWatchInterval, end_));
  }
  return true;
}

// Waits for the answers that are still to come.
void LoadGenerator::drain(const LoadHooks& hooks, bool stopped) {
  Parker parker;
  TimePoint now = monotonic_now();
  const TimePoint until = now + (stopped ? std::min(plan_.drain_timeout, kStoppedDrainTimeout) : plan_.drain_timeout);
  while (now < until && progress(now).in_flight > 0) {
    if (!stopped && hooks.should_stop && hooks.should_stop()) return;
    parker.park_until(now + kWatchInterval);
    now = monotonic_now();
  }
}

}  // namespace foliot
