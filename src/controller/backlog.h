// Backlog: what waits for an action, as the time of devices that it will take: EXEC
// for each request, as lately measured of its model and bucket, and LOAD for each model
// that no device holds.
//
// Threading: not thread-safe; one owner.
#ifndef FOLIOT_CONTROLLER_BACKLOG_H_
#define FOLIOT_CONTROLLER_BACKLOG_H_

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "controller/cluster.h"
#include "core/action.h"
#include "core/model_info.h"
#include "core/request.h"

namespace foliot {

class Backlog {
 public:
  // `cluster` outlives this.
  explicit Backlog(const Cluster& cluster) : cluster_(cluster) {}

  // REQUIRES: nothing waits for an earlier model with its id.
  void on_model_added(const ModelInfo& model);
  // An INFER is done, whose EXEC took so long.
  void on_exec(const Action& action, Duration exec);

  // EXEC of one row, never zero. REQUIRES: the model exists.
  Duration exec(ModelId model, BucketId bucket) const { return models_[model.value()].exec[bucket.value()]; }
  // What it would add, LOAD included.
  Duration cost(const Request& request) const;

  void add(const Request& request);
  // `exec`: as it was when the request was added.
  void remove(ModelId model, Duration exec);

  // How long so many devices need for what waits: all of it, or, if that is longer,
  // what those that hold the model cannot leave to others.
  Duration before(ModelId model, uint32_t devices) const;

 private:
  struct ModelWork {
    std::vector<Duration> exec;  // of one row; by bucket
    Duration waiting;            // EXEC of what waits
    Duration load;               // zero: nothing waits, or some device held it
    uint32_t requests = 0;
  };
  bool needs_load(ModelId model) const { return cluster_.copies[model.value()] == 0; }

  const Cluster& cluster_;
  std::vector<ModelWork> models_;  // by ModelId
  Duration exec_;                  // sums over all models
  Duration load_;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROLLER_BACKLOG_H_
