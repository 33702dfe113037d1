// Backlog: the work that waits for an action, as the time of devices that it will take:
// EXEC for each request, as lately measured of its model and bucket, and LOAD for each
// model that no device holds.
//
// A row costs its part of the batch that it would run in were devices scarce: of the
// batch sizes that its deadline has time for, filled by what waits or comes while it could
// wait, the one that takes least time for a row; or what rows took in batches that left
// others waiting, since not every policy fills its batches. Other batches say nothing: a
// device that has nothing better to do runs single rows, at several times the cost. Of a
// model that devices of several kinds run, the first kind is the measure.
//
// Threading: not thread-safe; one owner.
#ifndef FOLIOT_CONTROL_CONTROLLER_BACKLOG_H_
#define FOLIOT_CONTROL_CONTROLLER_BACKLOG_H_

#include <cstdint>
#include <vector>

#include "control/controller/cluster.h"
#include "foundation/base/time.h"
#include "foundation/core/action.h"
#include "foundation/core/model_info.h"
#include "foundation/core/request.h"

namespace foliot {

class Backlog {
 public:
  // `cluster` outlives this.
  explicit Backlog(const Cluster& cluster) : cluster_(cluster) {}

  // REQUIRES: nothing waits for an earlier model with its id.
  void on_model_added(const ModelInfo& model);
  // An INFER was sent, and its rows were removed.
  void on_sent(const Action& action);
  // An INFER is done, whose EXEC took so long.
  void on_exec(const Action& action, Duration exec);
  // A request has come, whether or not it is let in.
  void on_arrival(const Request& request, TimePoint now);

  // EXEC of its row, never zero. REQUIRES: the model exists.
  Duration exec(const Request& request) const;
  // What it would add, LOAD included.
  Duration cost(const Request& request) const;

  // Returns the EXEC that it adds: none if it is offline, since nothing waits for that.
  Duration add(const Request& request);
  // `exec`: what add() returned.
  void remove(const Request& request, Duration exec);

  // How long so many devices need for what waits: all of it, or, if that is longer,
  // what those that hold the model cannot leave to others.
  Duration before(ModelId model, uint32_t devices) const;

 private:
  struct BucketWork {
    std::vector<Duration> exec;  // of a batch, by size; of sizes that never ran nothing is here
    double rate = 0;             // requests per second, as of `seen`
    TimePoint seen;
    uint32_t requests = 0;  // that wait
    // Of batches that left others waiting, the last ones weighing most.
    Duration crowded_exec;
    double crowded_rows = 0;
  };
  struct ModelWork {
    std::vector<BucketWork> buckets;
    Duration waiting;  // EXEC of what waits
    Duration load;     // zero: nothing waits, or some device held it
    uint32_t requests = 0;
  };
  BucketWork& bucket_of(const Request& request) {
    return models_[request.model.value()].buckets[request.bucket.value()];
  }
  // It runs on a device of the first of the model's kinds.
  bool is_measure(const Action& action) const;
  // Of a batch of this compiled size.
  Duration& exec_of_size(const Action& action);
  bool needs_load(ModelId model) const { return cluster_.copies[model.value()] == 0; }

  const Cluster& cluster_;
  std::vector<ModelWork> models_;  // by ModelId
  Duration exec_;                  // sums over all models
  Duration load_;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_BACKLOG_H_
