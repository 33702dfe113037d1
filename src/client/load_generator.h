// LoadGenerator: offers load to a server through an InferenceClient and records
// what became of every request.
//
// Open loop: requests are due when the arrival process says, whatever the server
// does; the generator never waits for an answer, and latency counts from the due
// instant. Closed loop: `concurrency` users who each send the next request when
// the last one has come back.
//
// Threading: run() belongs to one thread; on_response() comes from the client's.
#ifndef FOLIOT_CLIENT_LOAD_GENERATOR_H_
#define FOLIOT_CLIENT_LOAD_GENERATOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "client/inference_client.h"
#include "platform/parker.h"
#include "workload/arrivals.h"
#include "workload/load_report.h"
#include "workload/popularity.h"

namespace foliot {

struct LoadPlan {
  // Open loop; null: closed loop.
  std::unique_ptr<ArrivalProcess> arrivals{};
  uint32_t concurrency = 1;  // closed loop only
  // What can be sent, per model of the report; at least one each, taken in turn.
  std::vector<std::vector<PreparedRequest>> requests{};
  Popularity popularity{1, 0};  // of the models
  Duration warmup{};            // sent first and not counted
  Duration duration = Duration::seconds(10);
  // How long to wait for answers when the time is over.
  Duration patience = Duration::seconds(30);
  // Open loop: more in flight than this are counted as unsent.
  uint32_t in_flight_max = 8192;
  Duration spin{};  // before each send (platform/parker.h)
  uint64_t seed = 1;
};

struct LoadProgress {
  Duration elapsed;
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
    uint32_t model = 0;
    TimePoint scheduled;
    TimePoint sent;
  };
  struct Departure {
    uint64_t tag;
    PreparedRequest request;
  };

  void send_open_loop();
  void start_closed_loop();
  bool wait_until(TimePoint instant);
  void send_one(TimePoint scheduled);
  Departure depart(uint32_t flight, TimePoint scheduled);  // REQUIRES: mutex_ held
  bool watch(const LoadHooks& hooks);
  void drain(const LoadHooks& hooks, bool stopped);
  LoadProgress progress(TimePoint now);

  LoadPlan plan_;
  LoadReport& report_;
  InferenceClient* client_ = nullptr;
  TimePoint start_;
  TimePoint measure_from_;
  TimePoint end_;
  std::atomic<bool> ended_{false};
  std::atomic<bool> sender_done_{false};
  Parker sender_parker_;

  std::mutex mutex_;  // guards everything below, and report_
  Random random_;
  std::vector<Flight> flights_;
  std::vector<uint32_t> free_flights_;
  std::vector<size_t> next_request_;  // per model
  LoadProgress counts_;
};

}  // namespace foliot

#endif  // FOLIOT_CLIENT_LOAD_GENERATOR_H_
