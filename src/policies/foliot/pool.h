// Pool: the devices that the present load needs. What they can do in time is left to
// them; the others are spare, and stay idle until a request would otherwise be late
// (Symphony's deferred batches, where there are devices to leave idle; eager ones where
// there are not).
//
// A model that gets `rate` requests per second fills batches of
// b = 1 + rate * (SLO - L(b)), and needs rate * L(b) / b of a device.
#ifndef FOLIOT_POLICIES_FOLIOT_POOL_H_
#define FOLIOT_POLICIES_FOLIOT_POOL_H_

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "policies/foliot/board.h"

namespace foliot::foliot_policy {

class Pool {
 public:
  // Not `consolidate`: every device is of the pool.
  Pool(const Board& board, bool consolidate) : board_(board), consolidate_(consolidate) {}

  // A model has got a request.
  void on_request(ModelId model, TimePoint now);
  void on_model_removed(ModelId model) { set_need(model, 0); }
  // A device has come or gone.
  void on_device_changed();
  // Follows rates that have fallen; some models each time.
  void refresh(TimePoint now);

  bool contains(DeviceId device) const { return !consolidate_ || device.value() < size(); }

 private:
  uint32_t size() const;  // devices [0, size()) are the pool

  struct Share {
    double need = 0;  // devices
    TimePoint next;   // when it is looked at again
  };
  void update(ModelId model, TimePoint now);
  void set_need(ModelId model, double need);

  const Board& board_;
  const bool consolidate_;
  std::vector<Share> shares_;  // by model
  double need_ = 0;            // the sum of them
  uint32_t down_ = 0;          // devices that are not up: others stand in for them
  uint32_t cursor_ = 0;
  TimePoint next_refresh_;
};

}  // namespace foliot::foliot_policy

#endif  // FOLIOT_POLICIES_FOLIOT_POOL_H_
