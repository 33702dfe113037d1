// Retrainer: retrains the personal models of a server by itself, when their schedules say so (Velox, section 4.3).
//
// A retraining is a process: `foliot retrain`, which trains at idle priority, or the command of personal.toml. It
// leaves a folder with a higher number than the newest version. That one is taken if it is better on what the server
// withholds from trainers, by PersonalModels::load(). One that is not taken is renamed to `.refused`, in place of the
// one before: the next training starts from what is served. Of those that were taken, the served one and the one
// before it are kept, the older ones removed; versions that came in another way are left as they are.
//
// The file `last_retraining` beside the log says when the last one was, and how much of the log it had seen: a
// restart does not begin the wait anew.
//
// Bounded: one retraining at a time, of all models of the server; its time by personal.toml; of what it prints, the
// last kComplaintBytesMax are kept.
//
// Threading: start(), look() and stop() by one owner, text() by any thread.
#ifndef FOLIOT_MODELS_TRAINING_RETRAINER_H_
#define FOLIOT_MODELS_TRAINING_RETRAINER_H_

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "answer/personal/service/personal_models.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/platform/thread.h"
#include "models/training/retrain_schedule.h"
#include "observe/metrics/metrics_source.h"

namespace foliot {

class Retrainer final : public MetricsSource {
 public:
  static constexpr size_t kComplaintBytesMax = 1024;

  struct Options {
    std::vector<std::string> program{"/proc/self/exe"};  // what `foliot` is
    std::function<TimePoint()> now;                      // monotonic
    std::function<TimePoint()> wall;                     // kept over restarts
    // Of what it does, from its thread; `is_failure`: an operator should know.
    std::function<void(bool is_failure, const std::string&)> log;
  };

  // The models outlive it.
  Retrainer(Options options, PersonalModels& models) : options_(std::move(options)), models_(models) {}
  ~Retrainer() override { stop(); }

  // Once, when the models are open: finds those that it is to retrain.
  void open();
  // Looks at them from now on, on a thread of its own; no thread where there are none.
  Status start();
  // Kills what it runs. Calling it again does nothing.
  void stop();
  // Retrains the one that is due and has waited longest, if there is one. False: none is due.
  bool look();

  std::string text() const override;

 private:
  struct Model {
    const PersonalSpec* spec;
    std::filesystem::path state;
    RetrainSchedule schedule;
    uint64_t noted_record = 0;               // of the log, at the last retraining
    std::optional<uint64_t> records_before;  // that came after it, before this process; nullopt: it is not served yet
    // Guarded by mutex_.
    std::array<uint64_t, 3> counts{};  // by RetrainOutcome
    Duration last_duration{};
    bool is_running = false;
    bool is_failing = false;
  };
  struct Ended {
    RetrainOutcome outcome;
    std::string report;
  };

  std::optional<RetrainSchedule::Facts> facts(Model& model) const;
  void retrain(Model& model, const RetrainSchedule::Facts& with, const std::string& why);
  // nullopt: stop() ended it.
  std::optional<Ended> train(const Model& model, const std::string& served);
  // Errors: how the command failed; kUnavailable: stop() ended it.
  Status run_command(const Model& model) const;
  std::vector<std::string> command(const Model& model) const;
  void note(Model& model, uint64_t record) const;

  const Options options_;
  PersonalModels& models_;
  std::vector<Model> retrained_;  // does not grow after open()
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;
  std::condition_variable stopped_;
  Thread thread_;
};

}  // namespace foliot

#endif  // FOLIOT_MODELS_TRAINING_RETRAINER_H_
