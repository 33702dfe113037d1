// DurationModel: how long a LOAD or an EXEC is expected to take, by what was
// measured. Every policy and the controller ask it through the Cluster; which one
// answers is chosen where the controller is made.
//
// An EXEC may take all lanes of a device or some. Seeds are of all lanes; of a narrower EXEC it
// is expected that it takes longer in proportion, until something was measured of any width but
// all: then an implementation may expect less of widths of which nothing was measured.
//
// Contract, which each implementation passes as a suite
// (control/controller/duration_model_conformance.h):
//  - Before anything was measured, an expectation follows from the seeds of ModelInfo.
//  - An expectation is never negative, and the same until the next change: policies keep
//    what they derived from it for as long as revision() of the model stands and nothing
//    was recorded of that device and model.
//  - What is recorded of one device, model, bucket or width changes nothing of another
//    device's model, of another bucket or of another width, but for widths of which nothing was
//    measured on devices of several lanes.
//  - doubt() never raises an expectation, and often enough repeated it lowers any that
//    nothing measures. An expectation that is too high would confirm itself: what is
//    thought to take too long is refused, never runs, and is never measured again.
//
// Threading: not thread-safe; the controller's.
#ifndef FOLIOT_CONTROL_CONTROLLER_DURATION_MODEL_H_
#define FOLIOT_CONTROL_CONTROLLER_DURATION_MODEL_H_

#include <cstdint>
#include <span>

#include "foundation/base/time.h"
#include "foundation/core/exec_part.h"
#include "foundation/core/ids.h"
#include "foundation/core/model_info.h"

namespace foliot {

// What the duration of an EXEC depends on.
struct ExecShape {
  DeviceId device;
  ModelId model;
  BucketId bucket;
  uint32_t batch_index = 0;  // position among the batch sizes of the device's Runnable
  uint32_t width_index = 0;  // of the lanes that it takes (foundation/core/lanes.h): 0 is all of them
};

// A part of an EXEC that is begun at once with others, on other lanes of the device.
struct ExecSegment {
  ExecShape shape;
  OperatorRange range;  // within its operators, kEnd included
  uint32_t operator_count = 1;
  Duration whole;  // how long all operators take alone, on all lanes
  Duration alone;  // how long these do
};

class DurationModel {
 public:
  virtual ~DurationModel() = default;

  // Facts. A device is the next id, and has one lane.
  virtual void add_device(KindId kind) = 0;
  // From now on. REQUIRES: nothing has been measured on it since it was added or forgotten.
  virtual void set_lane_count(DeviceId device, uint32_t lane_count) = 0;
  // Nothing has been measured on it: it is another one now, or may be.
  virtual void forget_device(DeviceId device) = 0;
  // REQUIRES: ids are dense and in order; or were those of a model before, of which
  // nothing is kept.
  // `kinds`: of its runnables, in their order.
  virtual void add_model(const ModelInfo& model, std::span<const KindId> kinds) = 0;
  // It has more batch sizes or runnables now; what was measured of the others holds.
  // REQUIRES: it has all runnables that it had, and the sizes that each had are the first
  // of those that it has.
  virtual void extend_model(const ModelInfo& model, std::span<const KindId> kinds) = 0;

  // Expectations. REQUIRES: the device can run the model; bucket, batch size and width exist.
  virtual Duration load(DeviceId device, ModelId model) const = 0;
  virtual Duration exec(const ExecShape& shape) const = 0;
  // exec() of every batch size, smallest first; holds until the next call of execs() or
  // of anything that changes this.
  virtual std::span<const Duration> execs(DeviceId device, ModelId model, BucketId bucket,
                                          uint32_t width_index) const = 0;
  // load(), exec() and execs() of these are about to be asked for: begins to bring what they read into the
  // processor's caches.
  virtual void prefetch(DeviceId device, ModelId model) const {
    static_cast<void>(device);
    static_cast<void>(model);
  }
  // From when the segments of a group begin until the last of them ends, of each of some
  // groups (Abacus, section 5). Where nothing is known, as long as one after another.
  virtual void together(std::span<const std::span<const ExecSegment>> groups, std::span<Duration> durations) const {
    for (size_t i = 0; i < groups.size(); ++i) {
      durations[i] = Duration();
      for (const ExecSegment& segment : groups[i]) durations[i] += segment.alone;
    }
  }
  // Another number after every change of expected EXECs but those of one model, by record_exec()
  // and doubt().
  virtual uint64_t revision() const = 0;
  // Another number after every change of the model's expected EXECs but by record_exec(),
  // which changes those of one device.
  virtual uint64_t revision(ModelId model) const = 0;

  // Measurements.
  virtual void record_load(DeviceId device, ModelId model, Duration measured) = 0;
  virtual void record_exec(const ExecShape& shape, Duration measured) = 0;
  // A request was refused, perhaps only because one row's EXEC is expected to take too
  // long.
  virtual void doubt(ModelId model, BucketId bucket, TimePoint now) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_DURATION_MODEL_H_
