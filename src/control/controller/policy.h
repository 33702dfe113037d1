// Policy: the interface of a scheduling policy. It receives facts and proposes actions;
// the controller decides.
//
// A policy keeps its own queues of the requests that it received. It decides in plan(),
// by the Cluster that it was made with, and passes its decisions to the Dispatcher,
// which checks each proposal against the controller's model of the device, sends it,
// and updates the Cluster before it returns.
//
// A policy reads no clock, starts no thread, and iterates over nothing whose
// order is not defined: same facts, same proposals.
//
// To add one: a folder src/control/policies/NAME with a class that implements this and a line
// in control/policies/registry.cc; the suite that every policy passes
// (control/policies/policies_test.cc) runs it from then on.
#ifndef FOLIOT_CONTROL_CONTROLLER_POLICY_H_
#define FOLIOT_CONTROL_CONTROLLER_POLICY_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "control/controller/cluster.h"
#include "foundation/base/time.h"
#include "foundation/core/action.h"
#include "foundation/core/exec_part.h"
#include "foundation/core/model_info.h"
#include "foundation/core/request.h"

namespace foliot {

// The result of a proposal; all but kAccepted leave everything as it was. A policy that
// only proposes what the Cluster allows gets no other.
enum class Verdict : uint8_t {
  kAccepted,
  kUnknown,         // device, model, bucket, batch size or request does not exist
  kNotRunnable,     // the device is of a kind that cannot run the model
  kNotPlaced,       // INFER or UNLOAD of a model that is not there
  kAlreadyPlaced,   // LOAD of a model that is there
  kNoPages,         // LOAD of more pages than are free
  kBackingOff,      // LOAD of a model that has failed there a short while ago
  kInUse,           // UNLOAD of a model that is loading or has INFERs outstanding
  kBusy,            // as many actions outstanding as the device takes
  kBadLanes,        // no interval of the device's lanes (foundation/core/lanes.h)
  kBadPart,         // no range of the plan, or a context that is in use or does not exist
  kBadWindow,       // latest is before earliest or in the past
  kAgainstTargets,  // what the model's target rules out (control/controller/targets.h)
};
std::string_view to_string(Verdict verdict);

// The window in which an action may begin.
struct Window {
  TimePoint earliest;
  TimePoint latest;
};

class Dispatcher {
 public:
  virtual ~Dispatcher() = default;
  virtual Verdict load(DeviceId device, ModelId model, Window window) = 0;
  virtual Verdict unload(DeviceId device, ModelId model) = 0;
  // Unloads a copy that is loaded or loading once what it has to do is over; it is as good
  // as gone now: policies do not see it any more, and it gets no more work.
  virtual Verdict retire(DeviceId device, ModelId model) = 0;
  // Runs 1 to batch_size queued requests of one model and bucket in one EXEC of
  // the compiled size `batch_size` on these lanes. Accepted: they are the device's now,
  // and the policy forgets them.
  virtual Verdict infer(DeviceId device, ModelId model, BucketId bucket, uint32_t batch_size, LaneInterval lanes,
                        std::span<const RequestId> requests, Window window) = 0;
  // The same of a part of the plan, in a context that holds the batch until it is over
  // (control/controller/contexts.h). `expected`: how long the EXEC takes beside those that the policy
  // plans with it. Requests are answered with the last part.
  virtual Verdict begin(DeviceId device, ModelId model, BucketId bucket, uint32_t batch_size, const ExecPart& part,
                        Duration expected, std::span<const RequestId> requests, Window window) = 0;
  // Goes on with the unfinished batch of this context until before operator `last`.
  virtual Verdict resume(DeviceId device, ContextIndex context, uint32_t last, LaneInterval lanes, Duration expected,
                         Window window) = 0;
  // Gives that batch up: its requests are refused, and the context is free.
  virtual Verdict abandon(DeviceId device, ContextIndex context, Refusal reason, TimePoint earliest_completion) = 0;
  // Answers a queued request with a refusal; the policy forgets it.
  // `earliest_completion`: when it could have been answered, zero if unknown.
  virtual Verdict refuse(RequestId request, Refusal reason, TimePoint earliest_completion) = 0;
};

class Policy {
 public:
  virtual ~Policy() = default;

  // Facts. `request` has been admitted; its model exists.
  virtual void on_request(const Request& request, TimePoint now) = 0;
  // A queued request is gone: cancelled, or its model was removed.
  virtual void on_withdrawn(const Request& request, TimePoint now) = 0;
  // The outcome of an action. Requests of an INFER that the worker refused come again
  // by on_request() after this, as long as they can be tried again.
  virtual void on_outcome(const Action& action, const Outcome& outcome, TimePoint now) = 0;
  // A device has come, is no longer up, or is up again: the Cluster says how many
  // pages it has now and what they hold. Of a lost one, the outcomes (kLost) of what
  // it had to do follow. Likewise when a copy is set aside because an EXEC of it has
  // failed, and when a model that has failed on the device may be loaded there again.
  virtual void on_device_changed(DeviceId device, TimePoint now) = 0;
  // The model's target is another now (Cluster::target()). Where it leaves no device to the
  // model, none of its requests is queued any more. Of copies that it does not allow where
  // they are, on_device_changed() has been called: they are set aside.
  virtual void on_target_changed(ModelId model, TimePoint now) = 0;
  virtual void on_model_added(const ModelInfo& model, TimePoint now) = 0;
  // None of its requests is queued any more.
  virtual void on_model_removed(ModelId model, TimePoint now) = 0;

  // Decides, after one or more facts or when it asked to be woken. Returns when
  // it wants to be called at the latest, whatever happens before.
  virtual TimePoint plan(TimePoint now, Dispatcher& dispatcher) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_POLICY_H_
