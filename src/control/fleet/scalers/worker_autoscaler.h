// WorkerAutoscaler: how many workers of each kind there are, decided every two seconds (the
// paper's section 4.2.3):
//
//   1. A kind whose utilisation is above 80 % on all its workers gets one more.
//   2. So does a kind on all workers of which variants are Interfered.
//   3. Where more than 80 % of all workers have Overloaded variants, one starts, of the kind
//      that most of those are of.
// And our own: a kind that an autoscaler of models lacks devices of gets as many as it lacks; one worker of
// a kind leaves when the others, at 80 % of that threshold, could do its work for as long as a
// worker takes to start, and no autoscaler of models would lack devices then. It is drained first: it leaves once
// it may.
//
// While workers of a kind start, no other of that kind does, but for those that are lacked besides. One that has not
// come after three times `start_up` no longer counts.
//
// Threading: one owner, not the controller's thread. Time is an argument.
#ifndef FOLIOT_CONTROL_FLEET_SCALERS_WORKER_AUTOSCALER_H_
#define FOLIOT_CONTROL_FLEET_SCALERS_WORKER_AUTOSCALER_H_

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/fleet/scalers/worker_pool.h"
#include "control/variants/variant.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

struct WorkerKind {
  MicroDollarsPerSecond price = 0;
  uint32_t least = 0;
  uint32_t most = std::numeric_limits<uint32_t>::max();
};

struct WorkerAutoscalerOptions {
  std::map<std::string, WorkerKind> kinds;
  // Of all workers together; the next one is not started beyond it.
  MicroDollarsPerSecond budget = std::numeric_limits<MicroDollarsPerSecond>::max();
  double utilisation_most = 0.8;
  double overloaded_share = 0.8;
  // The paper's machines take 20 to 30 s.
  Duration start_up = Duration::seconds(30);
  // Steps are so far apart. The paper's.
  Duration interval = Duration::seconds(2);
};

struct WorkerView {
  std::string name;
  std::string kind;
  double utilisation = 0;   // in [0, 1], of the resource that is used most
  bool overloaded = false;  // has Overloaded variants
  bool interfered = false;  // has Interfered ones
  bool may_leave = false;   // nothing would be lost if it did
  uint32_t devices = 1;
};

// Of kinds of which autoscalers of models want more devices than there are, how many workers more these need; and
// kinds that would lack some if a worker left.
struct DeviceDemand {
  std::map<std::string, uint32_t> lacking{};
  std::set<std::string> kept{};
};
// `wanted`: devices by kind.
DeviceDemand demand_of(const std::map<std::string, uint32_t>& wanted, const std::vector<WorkerView>& workers);

class WorkerAutoscaler {
 public:
  // `pool` outlives it.
  WorkerAutoscaler(WorkerAutoscalerOptions options, WorkerPool& pool);

  // `workers`: those that are there, drained ones too; `demand`: of autoscalers of models. The first failure of
  // the pool, a limit or the budget is returned; what it stopped is tried again in the next step.
  Status step(const std::vector<WorkerView>& workers, const DeviceDemand& demand, TimePoint now);

  // Workers that take no new instances.
  const std::set<std::string>& draining() const { return draining_; }

 private:
  struct Start {
    TimePoint at;
    uint32_t workers;  // of the kind, once all are there
  };
  // By how many workers.
  std::map<std::string, uint32_t> kinds_to_grow(const std::vector<WorkerView>& workers,
                                                const std::map<std::string, uint32_t>& lacking) const;
  Status grow(const std::string& kind, uint32_t more, const std::vector<WorkerView>& workers, TimePoint now);
  void keep(const std::string& kind, const std::vector<WorkerView>& workers);
  Status shrink(const std::string& kind, const std::vector<WorkerView>& workers, TimePoint now);
  Status grow_to(const std::string& kind, uint32_t workers);
  Status shrink_by_one(const std::string& kind);
  Status let_go(const std::vector<WorkerView>& workers);
  MicroDollarsPerSecond price_of(const std::vector<WorkerView>& workers) const;

  const WorkerAutoscalerOptions options_;
  WorkerPool& pool_;
  std::map<std::string, Start> starting_;        // by kind
  std::map<std::string, TimePoint> idle_since_;  // by kind: since when one could leave
  std::set<std::string> draining_;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_FLEET_SCALERS_WORKER_AUTOSCALER_H_
