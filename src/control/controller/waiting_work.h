// WaitingWork: the requests with a deadline that wait for an action, by model and bucket, and the
// EXEC that they need in the batches that they fill.
//
// A model that devices of several kinds run counts for the first of them. A request is counted at
// once; the sums follow when they are asked for, at a cost by how many models changed since.
//
// Threading: not thread-safe; one owner.
#ifndef FOLIOT_CONTROL_CONTROLLER_WAITING_WORK_H_
#define FOLIOT_CONTROL_CONTROLLER_WAITING_WORK_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "control/controller/cluster.h"
#include "foundation/base/time.h"
#include "foundation/core/request.h"

namespace foliot {

class WaitingWork {
 public:
  // `cluster` outlives this.
  explicit WaitingWork(const Cluster& cluster) : cluster_(cluster) {}

  void add(const Request& request) { change(request, 1); }
  // REQUIRES: it was added.
  void remove(const Request& request) { change(request, -1); }

  // All that waits for devices of this kind.
  Duration on_kind(KindId kind);
  // Whether something waits for the model.
  bool has(ModelId model) const {
    return model.value() < models_.size() &&
           std::ranges::any_of(models_[model.value()].rows, [](uint32_t rows) { return rows > 0; });
  }
  // What waits for the model, and so many rows more in `bucket`, on this device. REQUIRES: it can run the
  // model.
  Duration of_model(DeviceId device, ModelId model, BucketId bucket, uint32_t more) const;

 private:
  struct ModelWork {
    std::vector<uint32_t> rows;  // by BucketId
    bool changed = false;
    KindId kind;  // that `counted` is counted for
    Duration counted;
  };
  void change(const Request& request, int by);
  void refresh();

  const Cluster& cluster_;
  std::vector<ModelWork> models_;  // by ModelId
  std::vector<ModelId> changed_;
  std::vector<Duration> kinds_;  // by KindId
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_WAITING_WORK_H_
