// Retrainer: retrains the personal models of a server by itself, when their schedules say so (Velox, section 4.3).
//
// A retraining is a process: `foliot retrain`, which trains at idle priority, or the command of personal.toml. It
// leaves a folder with a higher number than the newest version. That one is taken if it is better on what the server
// withholds from trainers, by PersonalModels::load(). The next training starts from what is served, which is not the
// newest version after a rollback. One that is not taken is renamed to `.refused`, in place of the one before. Of those
// that were taken, the served one and the one before it are kept, the older ones removed; versions that came in another
// way are left as they are.
//
// The file `last_retraining` beside the log says when the last one was, and how much of the log it had seen: a
// restart does not begin the wait anew.
//
// In a cluster each front end has some of the users, and one leads (RetrainPeers::led). It sums up what all have
// observed, asks all for copies of their users, and makes a log of these beside its own, which it removes afterwards.
// Its command runs in a folder `.training.N` in the model's, which is to be the same folder for all front ends. A
// version that is better there, on what is withheld of the users that the leader keeps, is moved into the model's
// folder; the others take it from there as they find it.
//
// Bounded: one retraining at a time, of all models of the server; its time by personal.toml; of what it prints, the
// last kComplaintBytesMax are kept.
//
// Threading: start(), look() and stop() by one owner, text() by any thread.
#ifndef FOLIOT_MODELS_TRAINING_RETRAINER_H_
#define FOLIOT_MODELS_TRAINING_RETRAINER_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "answer/personal/service/personal_models.h"
#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/platform/thread.h"
#include "models/training/retrain_peers.h"
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
    RetrainPeers* peers = nullptr;  // outlive it; null: this server has all users
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
    std::map<std::string, uint64_t> of_peers{};  // observations that were counted last, where peers lead
    uint64_t of_all = 0;                         // of all front ends since this one leads
    bool counts_anew = false;                    // another front end has led meanwhile
    std::string failed_version{};                // of another front end, that could not be taken
    TimePoint takes_again{};                     // not before this
    std::pair<int64_t, uint64_t> noted{};        // when the last retraining was, by the wall clock, and its last record
    std::optional<uint64_t> records_before;  // that came after it, before this process; nullopt: it is not served yet
  };
  // The metrics show this of a model.
  struct Shown {
    std::string model;
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
  // Of the users of all front ends; nullopt: one of them does not answer.
  std::optional<RetrainSchedule::Facts> shared_facts(Model& model) const;
  std::filesystem::path note_file(const Model& model) const;
  // False: it says nothing new.
  bool read_note(Model& model) const;
  // In a cluster: takes what another front end has made, and learns whether this one leads. False: it does not.
  bool lead();
  void follow(Model& model);
  static void remove_gathered(const std::filesystem::path& state);
  void retrain(Model& model, const RetrainSchedule::Facts& with, const std::string& why);
  // nullopt: stop() ended it.
  std::optional<Ended> train(const Model& model, const std::string& served);
  std::optional<Ended> train_for_all(const Model& model, const std::string& served);
  // Where the command works: the model's folder and that of a log.
  struct Place {
    std::filesystem::path folder;
    std::filesystem::path state;
  };
  // Errors: how the command failed; kUnavailable: stop() ended it.
  Status run_command(const Model& model, const Place& place) const;
  std::vector<std::string> command(const Model& model, const Place& place) const;
  // Errors, as the next: why it could not be done.
  static Status stage(const Model& model, const Place& place, const std::string& served);
  Status gather(const Model& model, const Place& place) const;
  // Errors: kUnavailable, if the front ends are not those of the last lead(), or this is not the first of them.
  Status still_leads() const;
  void note(Model& model, uint64_t record) const;

  const Options options_;
  PersonalModels& models_;
  std::vector<Model> retrained_;    // of the thread, once that runs
  std::vector<std::string> peers_;  // that this front end leads
  bool leads_ = false;
  std::atomic<bool> stopping_{false};
  mutable Mutex mutex_;
  std::vector<Shown> shown_ GUARDED_BY(mutex_);  // as retrained_
  Condition stopped_;
  Thread thread_;
};

}  // namespace foliot

#endif  // FOLIOT_MODELS_TRAINING_RETRAINER_H_
