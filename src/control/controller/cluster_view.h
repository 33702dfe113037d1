// ClusterView: what is known of load, durations and devices at one instant, for planners,
// tuners and autoscalers, which decide what should be (control/controller/targets.h). A value,
// without references into the controller.
//
// Counts are of the time since the observer was made; the difference between two views is
// what happened between them.
#ifndef FOLIOT_CONTROL_CONTROLLER_CLUSTER_VIEW_H_
#define FOLIOT_CONTROL_CONTROLLER_CLUSTER_VIEW_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "foundation/base/time.h"
#include "foundation/core/ids.h"
#include "foundation/core/request.h"

namespace foliot {

struct ModelView {
  static constexpr size_t kClasses = static_cast<size_t>(RequestClass::kOffline) + 1;
  // How devices of one kind run it.
  struct OnKind {
    KindId kind;
    std::vector<uint32_t> batch_sizes;
    // Expected of EXEC, by position in batch_sizes, in the first bucket; of LOAD.
    std::vector<Duration> execs;
    Duration load;
  };
  bool served = false;  // false: there is no model of this id, and the rest says nothing
  double rate = 0;      // requests per second, since the last view
  uint64_t arrivals = 0;
  // Answered in time; answered too late; not answered.
  uint64_t in_time = 0;
  uint64_t late = 0;
  uint64_t refused = 0;
  std::array<uint32_t, kClasses> queued{};  // by RequestClass
  uint32_t copies = 0;                      // devices that are up and hold it, loaded
  std::vector<OnKind> kinds;                // that some device has been of
};

struct KindView {
  std::string name;
  uint32_t devices_up = 0;
  double busy = 0;     // share of their time that EXECs took that ended since the last view, at most 1
  uint64_t pages = 0;  // of those that are up
  uint64_t free_pages = 0;
};

struct ClusterView {
  TimePoint at;
  Duration interval;              // since the last view, or since the observer was made
  std::vector<ModelView> models;  // by ModelId
  std::vector<KindView> kinds;    // by KindId
};

// Is given each view as it is made.
class ClusterViewSink {
 public:
  virtual ~ClusterViewSink() = default;
  // False: it has no use for one now, and none is made.
  virtual bool wants_view() { return true; }
  // `view` holds until this returns.
  virtual void on_view(const ClusterView& view) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_CLUSTER_VIEW_H_
