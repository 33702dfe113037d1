// Admission: which requests wait, and which are refused as they come.
//
// While a kind of device is overloaded, a request of a model whose batches are full whichever of its requests are
// refused waits only if it can be answered behind all that waits already, where each batch takes what it will take once
// it has grown. So what waits is a plan that is kept: the newest requests are refused, and those that wait are
// answered. It costs nothing, since of such a model it does not matter which requests are served.
//
// Requests of a model whose batches may stay small wait while there is time for some more than can be met: which
// models got the most requests is known only later, and a device that chooses among them serves a sixth more.
//
// No request is refused that a device which does not hold its model could answer, if a copy would be loaded there: a
// burst of one model is served by copies that are loaded meanwhile.
//
// Models are weighed by their density, the weighted requests that a second of EXEC serves: a plan leaves out what is
// less dense than the request.
//
// Rejected: a part of the time that a request leaves to denser models (trunk reservation; Key, "Optimal control and
// trunk reservation in loss networks", 1990). Less dense models whose batches may stay small took it; in bursts 1 to 3
// % fewer requests were in time. A plan for every model. All refusals come at once then; of 200 models that ask for 1.7
// times what two devices can do 56 to 61 % are in time in place of 69.
//
// Threading: not thread-safe; the policy's.
#ifndef FOLIOT_CONTROL_POLICIES_FOLIOT_ADMISSION_H_
#define FOLIOT_CONTROL_POLICIES_FOLIOT_ADMISSION_H_

#include <optional>
#include <vector>

#include "control/policies/foliot/board.h"
#include "foundation/base/time.h"
#include "foundation/core/request.h"

namespace foliot::foliot_policy {

class Admission {
 public:
  explicit Admission(const Board& board) : board_(board) {}

  // A request that could be met by itself has come. nullopt: it is to wait. Else it is to be refused, and this is when
  // it could be answered if it were not.
  std::optional<TimePoint> turn_away(const Request& request, TimePoint now);
  // A request of the model was missed, or is refused.
  void note_missed(ModelId model, TimePoint now);
  bool overloaded(DeviceId device, TimePoint now) const;
  // A request was lately turned away.
  bool crowded(DeviceId device, TimePoint now) const;

 private:
  // The requests that wait for one model, as one EXEC.
  struct PlannedBatch {
    TimePoint deadline;  // of its first request
    Duration exec;       // once it has grown; of a model that other devices hold, too, its part
    uint32_t devices;    // that hold the model: bits, by position in devices_
    double density;
    ModelId model;
  };
  // It says when a request could be answered, behind what waits.
  struct Forecast {
    TimePoint answer = TimePoint::infinite_future();
    bool in_time = false;  // and what is due later can still be met
  };
  // `fills`: batches of the request's model are full whichever of its requests are refused.
  Forecast forecast(const Request& request, size_t rows_before, bool fills, TimePoint now);
  // A device that does not hold the request's model has so little to do that a copy is loaded there, and would then
  // answer in time behind all that waits there.
  bool could_load(const Request& request, TimePoint now) const;
  void plan(const ModelState& state, TimePoint now);
  void add(DeviceId device, ModelId model);

  const Board& board_;
  std::vector<TimePoint> overloaded_until_;  // by KindId
  std::vector<TimePoint> crowded_until_;     // by KindId
  // These are of the model that was last asked about.
  std::vector<DeviceId> devices_;
  std::vector<PlannedBatch> batches_;  // by deadline
  std::vector<DeviceId> holders_;      // scratch of plan()
  std::vector<TimePoint> free_at_;     // of devices_
  bool is_uneven_ = false;             // some are held by others of the devices, or by further ones
  uint64_t changes_ = 0;               // when that was
  TimePoint planned_at_;
};

}  // namespace foliot::foliot_policy

#endif  // FOLIOT_CONTROL_POLICIES_FOLIOT_ADMISSION_H_
