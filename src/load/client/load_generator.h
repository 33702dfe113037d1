// LoadGenerator: offers load to a server through an InferenceClient and records the
// result of every request.
//
// Requests are due when their source says, whatever the server does; the generator
// never waits for an answer, and latency counts from the due instant. In a closed
// loop it is an answer that brings the next request.
//
// Requests beyond the limit in flight are counted as unsent. Users of closed loops that
// wait for their next request are queued: as many as the source has.
//
// Threading: run() belongs to one thread; on_response() comes from the client's.
#ifndef FOLIOT_LOAD_CLIENT_LOAD_GENERATOR_H_
#define FOLIOT_LOAD_CLIENT_LOAD_GENERATOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "foundation/base/mutex.h"
#include "foundation/base/time.h"
#include "foundation/platform/parker.h"
#include "load/client/inference_client.h"
#include "load/client/load_source.h"
#include "load/workload/load_report.h"

namespace foliot {

// What can be sent for a model (of the report) and an SLO, taken in turn.
using RequestVariants = std::map<std::pair<uint32_t, Duration>, std::vector<PreparedRequest>>;

struct LoadPlan {
  std::unique_ptr<LoadSource> source{};
  RequestVariants requests{};  // for all that the source asks; none of them empty
  Duration warmup{};           // sent first and not counted
  Duration duration = Duration::seconds(10);
  // How long to wait for answers when the time is over.
  Duration drain_timeout = Duration::seconds(30);
  uint32_t in_flight_max = 8192;
  Duration spin{};  // before each send (foundation/platform/parker.h)
};

struct LoadProgress {
  Duration elapsed;
  Duration length;  // of the whole run, warm-up included
  bool warming_up = false;
  uint64_t answered = 0;  // since the start, warm-up included
  uint64_t refused = 0;
  uint64_t failed = 0;
  uint32_t in_flight = 0;
};

struct LoadHooks {
  // Called about once a second from the thread of run(); may be empty.
  std::function<void(const LoadProgress&)> on_progress{};
  // Asked several times a second; true ends the run early, and what is in flight
  // then gets two more seconds. May be empty.
  std::function<bool()> should_stop{};
};

class LoadGenerator : public ResponseSink {
 public:
  // `report` outlives the generator and belongs to it until run() returns.
  LoadGenerator(LoadPlan plan, LoadReport& report);

  // Runs to the end and stops `client`, whose sink this generator is. Call once.
  // Errors: those of starting a thread.
  Status run(InferenceClient& client, const LoadHooks& hooks);

  void on_response(uint64_t tag, const Response& response) override;

 private:
  // One request in flight; its position is its tag.
  struct Flight {
    Arrival arrival;
    TimePoint sent;
  };
  struct Departure {
    uint64_t tag;
    PreparedRequest request;
  };

  void send_what_is_due();
  TimePoint next_due();
  std::optional<Departure> take_due();
  Departure depart(uint32_t flight, const Arrival& arrival) REQUIRES(mutex_);
  std::optional<Arrival> within_run(std::optional<Arrival> arrival) const;
  void put_back(const Arrival& arrival) REQUIRES(mutex_);
  void record(const Flight& flight, TimePoint finished, const Response& response) REQUIRES(mutex_);
  bool watch(const LoadHooks& hooks);
  void drain(const LoadHooks& hooks, bool stopped);
  LoadProgress progress(TimePoint now);
  bool nothing_follows();

  LoadPlan plan_;
  LoadReport& report_ GUARDED_BY(mutex_);
  InferenceClient* client_ = nullptr;
  TimePoint start_;
  TimePoint measure_from_;
  TimePoint end_;
  std::atomic<bool> ended_{false};
  Parker sender_parker_;

  Mutex mutex_;
  std::optional<Arrival> next_ GUARDED_BY(mutex_);  // that comes by itself
  std::vector<Arrival> users_ GUARDED_BY(mutex_);   // a heap of what users ask next: the soonest first
  std::vector<Flight> flights_ GUARDED_BY(mutex_);
  std::vector<uint32_t> free_flights_ GUARDED_BY(mutex_);
  uint64_t departures_ GUARDED_BY(mutex_) = 0;
  LoadProgress counts_ GUARDED_BY(mutex_);
};

}  // namespace foliot

#endif  // FOLIOT_LOAD_CLIENT_LOAD_GENERATOR_H_
