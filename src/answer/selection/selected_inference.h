// SelectedInference: a layer of Inference that serves applications (Clipper, section 3.5). A
// call of an application becomes calls of the models that its policy selects, on the layer
// below, with the same inputs. Once all of them are answered or refused, their answers become
// one. Calls of models pass through.
//
// The models' deadline is the application's, less a reserve in which the answers are combined.
// What cannot meet it is refused by the controller at once. A call with a deadline that asks
// several models, or has a default output, ends before it all the same: when its time has come
// (call_timer.h) it is answered with what is there, or refused (kLate). Without some of the
// models' answers the answer is kPartial. A model that still runs reads a copy of the inputs;
// its rows, its part of the caller's limits and the copy are free when it has ended, and its
// answer is discarded. All copies together are limited; a call beyond that is refused
// (kOverload).
//
// Where a policy asks one model, and that refuses or fails while there is time, the policy selects
// another one in its place, each once. So a call waits for no model but its last. A model without an
// answer has the largest loss, where another one answered (served_application.h).
//
// Rows of too little confidence, and calls that no model answered, get the default output, if
// there is one.
//
// Response parameters: confidence (the least of its rows), models (that answered), missing
// (that were asked and did not), default (rows with the default output) and feedback_id, with
// which observe() learns from the answer.
//
// Applications may be added, removed and defined anew while calls are under way; those end by the
// definition with which they began.
//
// Each model that is asked counts against the limits of the caller's key.
//
// Threading: as Inference; expire() by any one thread. Each application has a lock, held for a selection, a
// combination's bookkeeping or an observation.
#ifndef FOLIOT_ANSWER_SELECTION_SELECTED_INFERENCE_H_
#define FOLIOT_ANSWER_SELECTION_SELECTED_INFERENCE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "answer/inference/inference.h"
#include "answer/inference/served_names.h"
#include "answer/inference/statistics.h"
#include "answer/selection/application.h"
#include "answer/selection/call_timer.h"
#include "answer/selection/kept_inputs.h"
#include "answer/selection/served_application.h"
#include "foundation/base/mutex.h"
#include "foundation/base/time.h"
#include "foundation/core/catalog.h"
#include "foundation/core/feedback_record.h"

namespace foliot {

class SelectedInference : public Inference {
 public:
  struct Options {
    uint64_t seed = 0;
    // Of copies of inputs, those of all calls together.
    uint64_t inputs_bytes_max = std::numeric_limits<uint64_t>::max();
  };
  // All references outlive this, and this outlives the answers that it gave.
  SelectedInference(const Options& options, Inference& below, const ServedNames& names, CallStatistics& statistics,
                    std::function<TimePoint()> now);
  ~SelectedInference() override;

  // Once: shows these in the catalog, with the state that their models make of them, from now
  // on. A model or a pipeline of the same name takes the place of an application. The catalog
  // outlives this.
  void serve(std::vector<Application> applications, Catalog& catalog);
  // After serve(): these are all applications from now on. One with another definition than before
  // gets it once that can be served; until then it is served by the one before, and its entry says
  // why. Returns what of these cannot be served now, and why, and cautions of what is new, as sentences.
  std::vector<std::string> replace(std::vector<Application> applications);

  // Of an application: what it learned.
  struct Learned {
    std::string application;
    std::string learns_as;  // Application::learns_as()
    ServedApplication::Learned learned;
  };
  // Before any call: logs shall say of each call of a model how it was selected (Query::selection).
  void describe_selections() { describes_selections_ = true; }
  // Before any call: feedback is kept there, which outlives this.
  void log_feedback(FeedbackSink& log) { feedback_log_ = &log; }
  // After serve(), once, before any call: goes on with these, and keeps changes from now on.
  void restore(std::span<const Learned> learned);
  // What has changed since the last call.
  std::vector<Learned> take_changes();
  // After serve(), once, before any call: from now on learns together with others, through a
  // StateExchange of served_applications().
  void share_learning();
  std::vector<std::shared_ptr<ServedApplication>> served_applications() const;

  // Before any call: `set_timer` is called, by any thread, with the instant at which expire() has to be called, instead
  // of what it was called with before. It must not call back.
  void use_timer(std::function<void(TimePoint)> set_timer) { timer_.use_timer(std::move(set_timer)); }
  // Ends calls whose time has come, through their mailboxes. Returns what it sets the timer to. No mailbox of a call
  // under way may end meanwhile.
  TimePoint expire(TimePoint now) { return timer_.run(now); }

  Started start(const Query& query, const Caller& caller) override;
  void cancel(CallId call) override;
  Status observe(const Observation& observation) override;

  // Of all applications, by name.
  using Statistics = std::vector<std::pair<std::shared_ptr<const Application>, ApplicationStatistics>>;
  Statistics application_statistics() const;
  // Of copies of inputs.
  uint64_t inputs_bytes() const { return inputs_.bytes(); }

 private:
  class Call;
  struct Served {
    explicit Served(Application from, uint64_t seed) : application(std::move(from), seed) {}
    ServedApplication application;
    std::atomic<bool> shadowed{false};  // a model has its name
    std::optional<Application> next;    // its definition, once that can be served; guarded by update_mutex_
  };
  struct Shard {
    mutable Mutex mutex;
    // By value of CallId: those that are not answered, or have a model that has not ended.
    std::unordered_map<uint64_t, std::unique_ptr<Call>> calls GUARDED_BY(mutex);
  };

  static constexpr size_t kShards = 16;

  std::shared_ptr<Served> find(std::string_view name) const;
  // Finds it also where a model has its name.
  std::shared_ptr<Served> find_any(std::string_view name) const;
  std::vector<std::shared_ptr<Served>> all() const;
  std::shared_ptr<Served> add(Application application) REQUIRES(update_mutex_);
  void index_models() REQUIRES(update_mutex_);
  ApplicationInterface interface_now(const Application& application) const REQUIRES(update_mutex_);
  // What keeps `next` from being served; empty: it is, or there is none.
  std::string take_next(Served& served) REQUIRES(update_mutex_);
  std::string note_of(const Served& served) const REQUIRES(update_mutex_);
  Shard& shard_of(CallId call) { return shards_[layer_number(call) % kShards]; }
  static uint64_t layer_number(CallId call);
  void update(Served& served) REQUIRES(update_mutex_);
  // Of any thread:
  void on_change(const std::string& name, const Catalog::EntryPtr& entry);
  // nullptr: it is answered, and all of its models have ended. On the thread of its mailbox, which
  // alone ends it.
  Call* find_call(CallId id);
  // All models of the call have ended.
  void finish(CallId id);
  // Its time has come.
  void expire(CallId id);
  // It has ended: what its policy learns from models that gave no answer.
  static void conclude(const Call& call);
  CallError error_of(const Call& call) const;
  std::unique_ptr<Answer> answer_of(Call& call);
  std::unique_ptr<Answer> default_answer(Call& call, const CallError& why);

  Inference& below_;
  const ServedNames& names_;
  CallStatistics& statistics_;
  const std::function<TimePoint()> now_;
  const uint64_t seed_;
  bool describes_selections_ = false;
  FeedbackSink* feedback_log_ = nullptr;  // null: none is kept
  std::atomic<bool> any_{false};          // there was an application
  mutable SharedMutex applications_mutex_;
  // Changed under update_mutex_ alone.
  std::map<std::string, std::shared_ptr<Served>, std::less<>> applications_ GUARDED_BY(applications_mutex_);
  Catalog* catalog_ = nullptr;
  Mutex update_mutex_;                                    // of the thread that changes entries of applications
  bool keeps_changes_ GUARDED_BY(update_mutex_) = false;  // restore() was called
  bool shares_learning_ GUARDED_BY(update_mutex_) = false;
  std::map<std::string, std::vector<Served*>, std::less<>> by_model_ GUARDED_BY(update_mutex_);
  KeptInputs inputs_;
  CallTimer timer_{[this](CallId call) { expire(call); }};
  std::array<Shard, kShards> shards_;
  std::atomic<uint64_t> next_{0};
  Catalog::Watch watch_;  // uses all of the above
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_SELECTION_SELECTED_INFERENCE_H_
