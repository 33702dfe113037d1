// PipelineTuning: runs PipelineTuners beside the controller: takes the runs that come, ten times a second lets the
// tuners decide, and sets their targets. It reads the plans of a folder (planning/pipelines/plan_file.h) again when
// they change.
//
// A run costs the controller's loop one push into a ring, and nothing while there are no plans. Beyond kArrivalsMax
// runs between two steps, runs are not counted, which is reported.
//
// Threading: the Observer's calls by the controller's loop; the rest by the owner. The tuners belong to a thread of
// their own.
#ifndef FOLIOT_NODE_TUNING_PIPELINE_TUNING_H_
#define FOLIOT_NODE_TUNING_PIPELINE_TUNING_H_

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "control/controller/targets.h"
#include "foundation/base/mutex.h"
#include "foundation/base/spsc_ring.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/core/observer.h"
#include "foundation/platform/thread.h"
#include "node/files/file_watch.h"
#include "observe/metrics/tuning_metrics.h"
#include "planning/pipelines/pipeline_tuners.h"

namespace foliot {

// By its name: "replan", which estimates and keeps 99 % at least cost (decision 0303), "by_ratio", or "printed", as
// InferLine has it (decision 0124). Errors: kNotFound naming them.
Result<TunerMethod> find_pipeline_tuner(std::string_view name);

struct PipelineTuningOptions {
  std::filesystem::path plans;  // a folder of NAME/plan.toml
  TunerMethod tuner = TunerOptions::by_ratio();
};

class PipelineTuning : public Observer {
 public:
  static constexpr Duration kInterval = Duration::milliseconds(100);
  static constexpr size_t kArrivalsMax = size_t{1} << 16;

  using SetTargets = std::function<void(Targets)>;
  // A line for operators, and whether it is trouble; troubles once each time that they begin.
  using OnLine = std::function<void(const std::string& line, bool trouble)>;
  // Both are called by the thread; `set_targets` with what changes. `metrics` outlives this.
  PipelineTuning(PipelineTuningOptions options, TuningMetrics& metrics, SetTargets set_targets, OnLine on_line);
  ~PipelineTuning() override { stop(); }

  // Reads the plans; damaged ones are reported, and their pipelines not tuned. Errors: kInvalidArgument naming the
  // folder that cannot be read.
  Status open();
  // After open().
  Status start();
  // Calling it again does nothing.
  void stop();
  // What the thread does every kInterval; in tests, without start().
  void step(TimePoint now);
  // By kind: as many as the replicas of all stages. From any thread.
  std::map<std::string, uint32_t> devices_wanted();

  void on_pipeline(const PipelineInfo& pipeline) override;
  void on_pipeline_removed(PipelineId pipeline) override;
  void on_run(const Request& request, const PipelineInfo* pipeline, TimePoint now) override;
  void on_device(const DeviceChange& change, TimePoint now) override;

 private:
  struct Arrival {
    PipelineId pipeline;
    TimePoint at;
  };
  struct Device {
    std::string kind;
    bool up = false;
  };
  // Of pipelines and devices, since the last step.
  struct Changes {
    std::vector<TunedPipeline> added{};
    std::vector<PipelineId> removed{};
    std::map<std::string, uint32_t> up{};  // devices, by kind, now
  };
  Status read_plans();
  void run();
  Changes take_changes();
  void take_arrivals();
  void report_troubles(const PipelineTuners::Step& step);
  void report_replicas(const PipelineTuners::Step& step);

  const PipelineTuningOptions options_;
  TuningMetrics& metrics_;
  const SetTargets set_targets_;
  const OnLine on_line_;
  std::atomic<bool> has_plans_{false};
  std::atomic<uint64_t> uncounted_{0};  // runs
  SpscRing<Arrival> arrivals_{kArrivalsMax};
  Mutex mutex_;
  Condition stop_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  Changes changes_ GUARDED_BY(mutex_);
  std::map<DeviceId, Device> devices_ GUARDED_BY(mutex_);
  std::map<std::string, uint32_t> devices_wanted_ GUARDED_BY(mutex_);
  // The thread's:
  PipelineTuners tuners_;
  std::unique_ptr<FileWatch> watch_;
  TimePoint looked_;  // at the files
  std::map<ModelId, ModelTarget> targets_;
  std::vector<PipelineTuners::StageReplicas> replicas_;
  std::map<std::string, std::string> troubles_;   // of the last step
  std::map<std::string, std::string> shortages_;  // likewise
  bool uncounted_reported_ = false;
  Thread thread_;
};

}  // namespace foliot

#endif  // FOLIOT_NODE_TUNING_PIPELINE_TUNING_H_
