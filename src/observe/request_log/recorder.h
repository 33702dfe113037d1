// Recorder: the observer that makes records of what the controller does, and
// joins what it sees: which action carried a request, which LOAD it waited for,
// how long the queue was, when an executor was expected to begin.
//
// Its memory is bounded by what the controller has in flight and by what devices
// hold. Whether records are written at once or by another thread is the sink's
// business, so the same recorder serves real and virtual time.
//
// Threading: Observer's calls, from the controller's loop.
#ifndef FOLIOT_OBSERVE_REQUEST_LOG_RECORDER_H_
#define FOLIOT_OBSERVE_REQUEST_LOG_RECORDER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "foundation/core/call_label.h"
#include "foundation/core/observer.h"
#include "observe/request_log/executor_timelines.h"
#include "observe/request_log/name_table.h"
#include "observe/request_log/record.h"

namespace foliot {

class Recorder : public Observer, public CallLabelSink {
 public:
  explicit Recorder(std::unique_ptr<RecordSink> sink) : sink_(std::move(sink)) {}

  void on_label(RequestId request, std::shared_ptr<const CallLabel> label) override;
  void on_model(const ModelInfo& model) override;
  void on_model_extended(const ModelInfo& model) override;
  void on_task(const TaskInfo& task) override;
  void on_task_removed(ServedTaskId task) override { tasks_.erase(task); }
  void on_request(const Request& request, TimePoint now) override;
  void on_action(const Action& action, TimePoint now) override;
  void on_outcome(const Action& action, const Outcome& outcome, TimePoint now) override;
  void on_completion(const Completion& completion, TimePoint now) override;
  // A run is recorded like a request, for a model with the pipeline's name.
  void on_run(const Request& request, const PipelineInfo* pipeline, TimePoint now) override;
  void on_run_over(const Completion& completion, TimePoint now) override;
  void on_device(const DeviceChange& change, TimePoint now) override;

 private:
  struct Model {
    std::string_view name;
    std::vector<Runnable> runnables;
    uint32_t copies = 0;  // devices that hold it, as far as the controller believes
  };
  struct OpenRequest {
    RequestRecord record;
    bool queued = true;
  };
  struct OpenAction {
    TimePoint sent;
    TimePoint expected_start = kNoTime;
    uint32_t queue_length = 0;
  };
  // A model on a device, or on its way there.
  struct Placement {
    ActionId load;
    TimePoint loaded_at = kNoTime;  // none: not yet
    bool leaving = false;           // an UNLOAD is under way
  };

  Model& model(ModelId id);
  OpenRequest& open(const Request& request, std::string_view name, bool cold_start);
  std::string_view kind_of(DeviceId device) const;
  uint32_t pages_of(const Action& action);
  void row_sent(const Action& action, RequestId row);
  void row_returned(RequestId row);
  void load_over(const Action& action, const Outcome& outcome);
  void unload_over(const Action& action, const Outcome& outcome);
  void find_awaited_load(ModelId model, RequestRecord& record) const;

  NameTable names_;
  std::unique_ptr<RecordSink> sink_;  // what it was given holds views of names_
  std::vector<Model> models_;         // by ModelId
  std::unordered_map<ServedTaskId, std::string_view> tasks_;
  std::vector<std::string_view> kinds_;  // by DeviceId
  ExecutorTimelines timelines_;
  std::map<std::pair<ModelId, DeviceId>, Placement> placements_;
  std::unordered_map<RequestId, OpenRequest> requests_;
  std::unordered_map<ActionId, OpenAction> actions_;
  uint32_t queued_ = 0;
  // Of the request that comes next.
  RequestId labelled_;
  std::shared_ptr<const CallLabel> label_;
};

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_REQUEST_LOG_RECORDER_H_
