// WorkloadArrivals: plays a workload: all its streams merged, in order of time.
//
// Nothing is drawn ahead, so a workload of any length takes the memory of its
// sources only. Streams have random numbers of their own: changing one leaves the
// others as they are. The same workload and seed give the same arrivals.
//
// Threading: not thread-safe; one owner.
#ifndef FOLIOT_LOAD_WORKLOAD_WORKLOAD_ARRIVALS_H_
#define FOLIOT_LOAD_WORKLOAD_WORKLOAD_ARRIVALS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "foundation/base/random.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "load/workload/workload.h"

namespace foliot {

struct Arrival {
  Duration at;  // since the beginning of the run
  uint32_t model = 0;
  uint32_t stream = 0;
  Duration slo = Duration::max();  // max(): best effort

  bool best_effort() const { return slo == Duration::max(); }
  TimePoint deadline(TimePoint begin) const { return best_effort() ? TimePoint::infinite_future() : begin + at + slo; }
};

class WorkloadArrivals {
 public:
  // Errors: those of Workload::check() and make_arrivals().
  static Result<WorkloadArrivals> make(const Workload& workload, uint64_t seed);
  WorkloadArrivals(WorkloadArrivals&&) noexcept;
  ~WorkloadArrivals();

  // The next request that comes by itself: all of open loops and traces, and the
  // first of every user of a closed loop. nullopt when none follows.
  std::optional<Arrival> next();
  // A request was over at `now`: the one that it brings in a closed loop, at
  // `now` + think_time. nullopt for other streams and after the stream's end.
  std::optional<Arrival> follow(const Arrival& over, Duration now) const;

  // A generator of arrivals; known to the implementation only.
  class Source;

 private:
  struct StreamState {
    bool closed = false;
    Duration think_time;
    Duration stop;
  };
  // When a source's next arrival is due, and which: a heap of these.
  struct Due {
    Arrival arrival;
    uint32_t source = 0;
    bool operator>(const Due& other) const;
  };
  WorkloadArrivals();
  void push_next(uint32_t source);

  uint32_t models_ = 0;
  std::vector<StreamState> streams_;
  std::vector<Duration> slos_;  // by stream and model: [stream * models + model]
  std::vector<std::unique_ptr<Source>> sources_;
  std::vector<Due> heap_;
};

}  // namespace foliot

#endif  // FOLIOT_LOAD_WORKLOAD_WORKLOAD_ARRIVALS_H_
