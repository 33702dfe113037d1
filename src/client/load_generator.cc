#include "client/load_generator.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "platform/clock.h"
#include "platform/thread.h"

namespace foliot {
namespace {

constexpr Duration kWatchInterval = Duration::milliseconds(20);
constexpr Duration kProgressInterval = Duration::seconds(1);
constexpr Duration kStoppedPatience = Duration::seconds(2);

}  // namespace

LoadGenerator::LoadGenerator(LoadPlan plan, LoadReport& report)
    : plan_(std::move(plan)), report_(report), random_(plan_.seed), next_request_(plan_.requests.size(), 0) {
  FOLIOT_CHECK(!plan_.requests.empty() && plan_.in_flight_max > 0 && plan_.concurrency > 0);
  for (const auto& requests : plan_.requests) FOLIOT_CHECK(!requests.empty());
  flights_.resize(plan_.arrivals ? plan_.in_flight_max : plan_.concurrency);
  for (size_t i = flights_.size(); i > 0; --i) free_flights_.push_back(static_cast<uint32_t>(i - 1));
}

Status LoadGenerator::run(InferenceClient& client, const LoadHooks& hooks) {
  client_ = &client;
  start_ = monotonic_now();
  measure_from_ = start_ + plan_.warmup;
  end_ = measure_from_ + plan_.duration;
  Thread sender;
  if (plan_.arrivals) {
    FOLIOT_ASSIGN_OR_RETURN(sender, Thread::start({.name = "load-sender"}, [this] { send_open_loop(); }));
  } else {
    start_closed_loop();
  }
  const bool stopped = !watch(hooks);
  const TimePoint ended_at = std::min(monotonic_now(), end_);
  ended_.store(true);
  sender_parker_.unpark();
  sender.join();
  drain(hooks, stopped);
  client.stop();
  report_.set_duration(std::max(ended_at - measure_from_, Duration()));
  return Status();
}

void LoadGenerator::send_open_loop() {
  // A generator of its own: what is sent does not disturb when.
  Random random(plan_.seed ^ 0x5bd1e995);
  TimePoint scheduled = start_;
  while (const std::optional<Duration> gap = plan_.arrivals->next_gap(random)) {
    scheduled += *gap;
    if (scheduled >= end_ || !wait_until(scheduled)) break;
    send_one(scheduled);
  }
  sender_done_.store(true);
}

// False if the run was ended meanwhile.
bool LoadGenerator::wait_until(TimePoint instant) {
  while (!ended_.load()) {
    if (monotonic_now() >= instant) return true;
    sender_parker_.park_until(instant, plan_.spin);
  }
  return false;
}

void LoadGenerator::send_one(TimePoint scheduled) {
  std::optional<Departure> departure;
  {
    const std::lock_guard lock(mutex_);
    if (!free_flights_.empty()) {
      const uint32_t flight = free_flights_.back();
      free_flights_.pop_back();
      departure = depart(flight, scheduled);
    } else if (scheduled >= measure_from_) {
      report_.record(
          {.model = plan_.popularity.draw(random_), .scheduled = scheduled, .outcome = LoadOutcome::kUnsent});
    }
  }
  if (departure) client_->send(departure->request, departure->tag);
}

void LoadGenerator::start_closed_loop() {
  for (uint32_t i = 0; i < plan_.concurrency; ++i) send_one(monotonic_now());
}

LoadGenerator::Departure LoadGenerator::depart(uint32_t flight, TimePoint scheduled) {
  const uint32_t model = plan_.popularity.draw(random_);
  const std::vector<PreparedRequest>& requests = plan_.requests[model];
  flights_[flight] = {.model = model, .scheduled = scheduled, .sent = monotonic_now()};
  return {.tag = flight, .request = requests[next_request_[model]++ % requests.size()]};
}

void LoadGenerator::on_response(uint64_t tag, const Response& response) {
  const TimePoint now = monotonic_now();
  std::optional<Departure> next;
  {
    const std::lock_guard lock(mutex_);
    const Flight flight = flights_.at(tag);
    switch (response.outcome) {
      case LoadOutcome::kAnswered: ++counts_.answered; break;
      case LoadOutcome::kRefused: ++counts_.refused; break;
      case LoadOutcome::kFailed: ++counts_.failed; break;
      case LoadOutcome::kUnsent: FOLIOT_CHECK(false);
    }
    if (flight.scheduled >= measure_from_) {
      report_.record({.model = flight.model,
                      .scheduled = flight.scheduled,
                      .sent = flight.sent,
                      .finished = now,
                      .outcome = response.outcome,
                      .reason = response.reason});
    }
    if (!plan_.arrivals && !ended_.load() && now < end_) {
      next = depart(static_cast<uint32_t>(tag), now);
    } else {
      free_flights_.push_back(static_cast<uint32_t>(tag));
    }
  }
  if (next) client_->send(next->request, next->tag);
}

LoadProgress LoadGenerator::progress(TimePoint now) {
  const std::lock_guard lock(mutex_);
  LoadProgress result = counts_;
  result.elapsed = now - start_;
  result.warming_up = now < measure_from_;
  result.in_flight = static_cast<uint32_t>(flights_.size() - free_flights_.size());
  return result;
}

// Shows progress until the time is over or nothing more will come; false if the
// run is to be stopped early.
bool LoadGenerator::watch(const LoadHooks& hooks) {
  Parker parker;  // nobody wakes it: a clock to sleep by
  TimePoint report_at = start_ + kProgressInterval;
  for (TimePoint now = monotonic_now(); now < end_; now = monotonic_now()) {
    if (hooks.should_stop && hooks.should_stop()) return false;
    const bool all_sent = sender_done_.load();  // read before what is in flight
    const LoadProgress current = progress(now);
    if (all_sent && current.in_flight == 0) return true;
    if (now >= report_at) {
      if (hooks.on_progress) hooks.on_progress(current);
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
  const TimePoint until = now + (stopped ? std::min(plan_.patience, kStoppedPatience) : plan_.patience);
  while (now < until && progress(now).in_flight > 0) {
    if (!stopped && hooks.should_stop && hooks.should_stop()) return;
    parker.park_until(now + kWatchInterval);
    now = monotonic_now();
  }
}

}  // namespace foliot
