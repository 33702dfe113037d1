// LoadBackOff: the models that may not be loaded on some devices for now, because they
// failed there.
//
// A pair of device and model that fails backs off: for `first`, and for twice as long
// with each further failure, up to `max`. An EXEC of the model on the device that
// succeeds ends the row of failures; a LOAD that succeeds does not, since a copy whose
// EXECs fail may load well.
//
// Threading: not thread-safe; one owner.
#ifndef FOLIOT_CONTROL_CONTROLLER_LOAD_BACK_OFF_H_
#define FOLIOT_CONTROL_CONTROLLER_LOAD_BACK_OFF_H_

#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "foundation/base/time.h"
#include "foundation/core/ids.h"

namespace foliot {

struct LoadBackOffOptions {
  // Some ten LOADs: a device that fails at once has next to no share in the attempts,
  // and an error that passes, such as a file that is being replaced, costs little.
  Duration first = Duration::milliseconds(100);
  // How long a package that was repaired may have to wait for the next attempt.
  Duration max = Duration::seconds(30);
};

class LoadBackOff {
 public:
  explicit LoadBackOff(const LoadBackOffOptions& options = {}) : options_(options) {}

  bool may_load(DeviceId device, ModelId model, TimePoint now) const;
  // True from the first failure of the model on any device until it is forgotten everywhere.
  bool has_failed(ModelId model) const;

  // A LOAD or an EXEC failed.
  void on_failure(DeviceId device, ModelId model, TimePoint now);
  // An EXEC succeeded.
  void on_success(DeviceId device, ModelId model) {
    if (!pairs_.empty()) forget(device, model);
  }
  // The device joins with other pages, perhaps as another process.
  void forget_device(DeviceId device);
  // Its id is another model's from now on.
  void forget_model(ModelId model);

  // The devices of the back-offs that have ended since the last call, ascending, each once.
  std::vector<DeviceId> take_ended(TimePoint now);
  // When the next one ends; infinite if there is none.
  TimePoint next_end() const { return ends_.empty() ? TimePoint::infinite_future() : std::get<0>(*ends_.begin()); }

 private:
  struct State {
    Duration length;
    TimePoint until;
  };
  using Pair = std::pair<ModelId, DeviceId>;
  void forget(DeviceId device, ModelId model);

  LoadBackOffOptions options_;
  std::map<Pair, State> pairs_;                              // few: those that have failed
  std::set<std::tuple<TimePoint, DeviceId, ModelId>> ends_;  // of those that still back off
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_LOAD_BACK_OFF_H_
