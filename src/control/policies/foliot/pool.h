// Pool: the devices that the present load needs. What they can do in time is left to
// them; the others are spare, and stay idle until a request would otherwise be late
// (Symphony's deferred batches, where there are devices to leave idle; eager ones where
// there are not).
//
// A model that gets `rate` requests per second fills batches of
// b = 1 + rate * (SLO - L(b)), and needs rate * L(b) / b of a device. Each kind of device
// has a pool of its own; a model counts for the kind of the first device that can run it.
#ifndef FOLIOT_CONTROL_POLICIES_FOLIOT_POOL_H_
#define FOLIOT_CONTROL_POLICIES_FOLIOT_POOL_H_

#include <cstdint>
#include <vector>

#include "control/policies/foliot/board.h"
#include "foundation/base/time.h"

namespace foliot::foliot_policy {

class Pool {
 public:
  // Not `consolidate`: every device is of the pool.
  Pool(const Board& board, bool consolidate) : board_(board), consolidate_(consolidate) {}

  // A model has got a request.
  void on_request(ModelId model, TimePoint now);
  void on_model_removed(ModelId model) { set_need(model, KindId(), 0); }
  // A device has come or gone.
  void on_device_changed();
  // Follows rates that have fallen; some models each time.
  void refresh(TimePoint now) {
    if (now >= next_refresh_ || ranks_.size() < board_.cluster().devices.size()) refresh_some(now);
  }

  bool contains(DeviceId device) const {
    return !consolidate_ || (device.value() < ranks_.size() && ranks_[device.value()] < size(kind(device)));
  }

 private:
  struct Share {
    double need = 0;  // devices
    KindId kind;
    TimePoint next;  // when it is looked at again
  };
  // The first devices of a kind are its pool.
  struct KindPool {
    double need = 0;       // the sum of its models'
    uint32_t devices = 0;  // up or not
    uint32_t down = 0;     // devices that are not up: others stand in for them
  };
  void refresh_some(TimePoint now);
  KindId kind(DeviceId device) const { return board_.cluster().devices[device.value()].kind(); }
  uint32_t size(KindId kind) const;
  KindPool& pool(KindId kind);
  void update(ModelId model, TimePoint now);
  void set_need(ModelId model, KindId kind, double need);

  const Board& board_;
  const bool consolidate_;
  std::vector<Share> shares_;    // by model
  std::vector<KindPool> pools_;  // by KindId
  std::vector<uint32_t> ranks_;  // by DeviceId: the position among those of its kind
  uint32_t cursor_ = 0;
  TimePoint next_refresh_;
};

}  // namespace foliot::foliot_policy

#endif  // FOLIOT_CONTROL_POLICIES_FOLIOT_POOL_H_
