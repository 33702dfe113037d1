// Admission: refuses on arrival what will not be answered in time anyway, so that
// whoever asked learns it at once and can go elsewhere (Clockwork, section 4.1,
// step 4), and no queue grows beyond what its deadlines allow.
//
// It keeps, by deadline, how much work is queued: what is due before a request
// is expected to run before it, and to take a tenth longer than estimated. The
// longer the queue, the more can go wrong in it; with this reserve what has been
// admitted is also served, instead of expiring behind a batch that came out
// smaller or took longer than expected.
#ifndef FOLIOT_CONTROLLER_ADMISSION_H_
#define FOLIOT_CONTROLLER_ADMISSION_H_

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "controller/cluster.h"
#include "core/request.h"

namespace foliot {

// Sums of queued work by deadline: a Fenwick tree over a ring of slices of 1 ms
// that reaches 8 s into the past and into the future. Work that is due later
// than that is left out: it is in nobody's way yet.
class Backlog {
 public:
  // What add() gave, to be given back to remove().
  struct Ticket {
    int64_t slice = -1;  // -1: left out
    Duration work;
  };
  Ticket add(TimePoint deadline, Duration work, TimePoint now);
  void remove(const Ticket& ticket);
  // Work that is due at or before `deadline`.
  Duration due_by(TimePoint deadline, TimePoint now) const;

 private:
  static constexpr int64_t kSliceNanoseconds = 1'000'000;
  static constexpr int64_t kSlices = 16384;
  static int64_t slice_of(TimePoint instant) { return instant.nanoseconds() / kSliceNanoseconds; }
  void change(int64_t slice, int64_t nanoseconds);
  int64_t sum_of_first(int64_t positions) const;

  std::vector<int64_t> tree_ = std::vector<int64_t>(kSlices + 1);
};

class Admission {
 public:
  explicit Admission(const Cluster& cluster) : cluster_(cluster) {}

  struct Decision {
    Refusal refusal = Refusal::kNone;
    TimePoint earliest_completion;  // predicted, had it been admitted
    bool missed = false;            // refused only because its model is not loaded
    bool too_long = false;          // refused only because its EXEC takes too long
  };
  Decision decide(const Request& request, TimePoint now) const;

  // The request joins the queues, and leaves them.
  Backlog::Ticket enqueued(const Request& request, TimePoint now);
  void dequeued(const Request& request, const Backlog::Ticket& ticket);

 private:
  struct Placement {
    TimePoint exec_available;  // earliest on any device
    TimePoint loaded;          // when the model is or could be loaded
    bool needs_load = false;
    Duration load;
    Duration exec;  // one row
  };
  // The queued requests of one model and bucket.
  struct Lane {
    uint32_t queued = 0;
    Duration work;  // of their tickets
  };
  Placement best_placement(const Request& request, TimePoint now) const;
  // Work that comes before the request's own EXEC, in its batch or before it.
  Duration work_ahead(const Request& request, TimePoint now) const;
  const Lane* find_lane(const Request& request) const;
  // EXEC of so many rows in as few batches as possible.
  Duration exec_of_rows(const Request& request, uint32_t rows) const;
  Duration share_of_batch(const Request& request, uint32_t queued) const;

  const Cluster& cluster_;
  Backlog backlog_;
  std::vector<std::vector<Lane>> lanes_;  // [model][bucket]
};

}  // namespace foliot

#endif  // FOLIOT_CONTROLLER_ADMISSION_H_
