// Checker: watches a whole system and stops the program when a promise is broken:
// every request and every run of a pipeline is answered exactly once, a run after all of its visits, and served
// only after those that its conditions and counts ask for, each made once, and no others; no answer after
// its deadline counts as good; executors, and lanes, do one thing at a time, inside its window; a context holds one
// unfinished batch, whose ranges follow each other; pages balance; a
// device that is not up gets no work, and a lost one has no say; no model is loaded or run
// on a device of a kind that cannot run it, or against the target in
// force for it, and no copy that a target rules out stays for long; no request is sent more
// often than it may return; no LOAD comes again sooner than a back-off after it failed; of requests that are
// equals, of one model, bucket and deadline, none waits while more than one batch of
// later ones is sent. Later is what arrived later, or, where that is the same, was
// admitted later.
//
// Each event costs it much the same, however many requests, models and devices there
// are.
#ifndef FOLIOT_VIRTUAL_WORLD_CHECKER_H_
#define FOLIOT_VIRTUAL_WORLD_CHECKER_H_

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "foundation/base/flat_map.h"
#include "foundation/base/time.h"
#include "foundation/core/observer.h"
#include "foundation/core/stage_slots.h"
#include "foundation/core/visit_reading.h"
#include "virtual/world/work_observer.h"

namespace foliot {

struct CheckerOptions {
  uint32_t returns_max = 3;
  // From a device's joining: rows whose inputs did not reach it are no returns.
  Duration attachment_wait = Duration::seconds(1);
  Duration load_back_off = Duration::milliseconds(100);  // after the first failure
  // Batches of later equals that are sent while a request waits.
  uint32_t overtaken_max = 1;
  // From when a target rules a copy out until its UNLOAD is sent.
  Duration ruled_out_max = Duration::seconds(10);
  // How far apart the controller's and the workers' clocks may seem to be.
  Duration clock_error;
};

class Checker : public Observer, public WorkObserver {
 public:
  explicit Checker(const CheckerOptions& options = {}) : options_(options) {}

  void on_model(const ModelInfo& model) override;
  void on_model_extended(const ModelInfo& model) override;
  void on_target(ModelId model, const ModelTarget& target, TimePoint now) override;
  void on_request(const Request& request, TimePoint now) override;
  void on_action(const Action& action, TimePoint now) override;
  void on_outcome(const Action& action, const Outcome& outcome, TimePoint now) override;
  void on_completion(const Completion& completion, TimePoint now) override;
  void on_run(const Request& request, const PipelineInfo* pipeline, TimePoint now) override;
  void on_run_over(const Completion& completion, TimePoint now) override;
  void on_device(const DeviceChange& change, TimePoint now) override;
  void on_pages(DeviceId device, uint32_t used, uint32_t total) override;
  // From the executors' drivers.
  void on_work(ExecutorKind executor, const Action& action, TimePoint start, TimePoint end) override;

  // At the end of a run: nothing is left open.
  void check_finished() const;

  uint64_t requests() const { return requests_; }
  uint64_t served() const { return served_; }
  uint64_t refused(Refusal reason) const { return refused_[static_cast<size_t>(reason)]; }
  uint64_t failures() const { return failures_; }
  uint64_t loads() const { return loads_; }
  uint64_t execs() const { return execs_; }

 private:
  static constexpr size_t kRefusals = static_cast<size_t>(kRefusalLast) + 1;
  // Of a batch that was begun and has ranges to come.
  struct Context {
    uint32_t outstanding = 0;           // INFERs
    std::optional<RequestId> holder{};  // the first row of the batch
    uint32_t next = 0;                  // operator
  };
  struct Device {
    std::array<TimePoint, kExecutorKinds> busy_until{};  // but EXEC's
    std::array<TimePoint, kLanesMax> lanes_busy_until{};
    uint32_t lane_count = 1;
    std::vector<Context> contexts{1};
    std::vector<bool> loaded;  // by ModelId, as outcomes say
    std::vector<bool> held;    // by ModelId: from when a LOAD is sent until an UNLOAD is
    uint64_t pages = 0;        // of the loaded models
    uint32_t pages_total = 0;
    DeviceState state = DeviceState::kUp;
    TimePoint joined_at;
    std::string kind{kDefaultKind};
    std::map<ModelId, TimePoint> failed_loads;  // since it joined: the last of each model
  };
  // Equals stand together, in the order in which they are to be served.
  struct Turn {
    ModelId model;
    BucketId bucket;
    TimePoint deadline;
    TimePoint arrival;
    uint64_t sequence = 0;
    auto operator<=>(const Turn&) const = default;
    bool equal(const Turn& other) const {
      return model == other.model && bucket == other.bucket && deadline == other.deadline;
    }
  };
  struct Open {
    Turn turn;
    TimePoint answer_by;
  };
  struct Run {
    TimePoint answer_by;
    const PipelineInfo* pipeline = nullptr;  // null: there is none
    uint32_t visits = 0;                     // that are open
    SlotSet made{};                          // visits that began
    SlotSet served{};
    std::array<VisitReading, kStagesMax> readings{};  // of stages that were visited
  };
  Device& device(DeviceId id);
  // nullptr: the request is no visit of a run.
  Run* run_of_visit(RequestId request);
  void begin_visit(Run& run, uint32_t slot);
  void end_visit(Run& run, const Completion& visit);
  // Each of its elements, where it is visited for each, is served.
  bool is_over(const Run& run, uint32_t stage) const;
  // Each stage that was to be visited was, as often as it was to be.
  void check_visits(const Run& run) const;
  void set_loaded(Device& device, ModelId model, bool loaded);
  // nullptr: devices of its kind cannot run the model.
  const Runnable* runnable(const Device& device, ModelId model) const;
  void check_runnable(const Action& action);
  void check_order(const Action& infer);
  void waits_again(RequestId request, DeviceId from, bool inputs_missing, TimePoint now);
  void check_context(const Action& infer);
  void context_over(const Action& infer, bool done);
  static void set_held(Device& device, ModelId model, bool held);
  // Whether the target allows copies on devices like this one.
  bool allows(const Device& device, ModelId model) const;
  // Devices that are up and hold it.
  uint32_t copies(ModelId model) const;
  bool ruled_out(ModelId model) const;
  void note_ruled_out(ModelId model, TimePoint now);
  void check_target(const Action& action) const;
  // That none of those that are ruled out has been so for too long.
  void check_ruled_out(TimePoint now) const;

  const CheckerOptions options_;
  FlatMap<RequestId, Open> open_;
  FlatMap<RequestId, Run> runs_;  // of pipelines
  std::map<PipelineId, StageSlots> slots_;
  FlatMap<RequestId, uint32_t> infers_;  // how often it was begun, where that counts
  // Requests that are in no action, and how many batches have overtaken each.
  std::map<Turn, uint32_t> waiting_;
  FlatMap<ActionId, uint8_t> actions_;  // those without an outcome
  std::vector<Device> devices_;
  std::vector<std::vector<Runnable>> runnables_;                       // by ModelId
  std::vector<ModelTarget> targets_;                                   // by ModelId
  std::map<ModelId, TimePoint> ruled_out_;                             // models with copies that are, and since when
  std::map<RequestId, std::pair<DeviceId, ContextIndex>> unfinished_;  // batches, by their first row
  std::array<uint64_t, kRefusals> refused_{};
  uint64_t requests_ = 0;
  uint64_t served_ = 0;
  uint64_t loads_ = 0;
  uint64_t execs_ = 0;
  uint64_t failures_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_WORLD_CHECKER_H_
