// SelectedInference: a layer of Inference that serves applications (Clipper, section 3.5). A
// call of an application becomes calls of the models that its policy selects, on the layer
// below, with the same inputs. Once all of them are answered or refused, their answers become
// one. Calls of models pass through.
//
// The models' deadline is the application's, less a reserve in which the answers are combined.
// What cannot meet it is refused by the controller at once, so that the rest is combined in
// time without a timer; the answer is kPartial then. A model that runs longer than it was
// expected to makes the answer late: an EXEC that has begun cannot be taken back, and inputs
// must stay until it has them. Rows of too little confidence, and calls that no model
// answered, get the default output, if there is one.
//
// Response parameters: confidence (the least of its rows), models (that answered), missing
// (that were asked and did not), default (rows with the default output) and feedback_id, with
// which observe() learns from the answer.
//
// Each model that is asked counts against the limits of the caller's key.
//
// Threading: as Inference. Each application has a lock, held for a selection, a combination's
// bookkeeping or an observation.
#ifndef FOLIOT_SELECTION_SELECTED_INFERENCE_H_
#define FOLIOT_SELECTION_SELECTED_INFERENCE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/time.h"
#include "core/catalog.h"
#include "inference/inference.h"
#include "inference/served_names.h"
#include "inference/statistics.h"
#include "selection/application.h"
#include "selection/served_application.h"

namespace foliot {

class SelectedInference : public Inference {
 public:
  // All references outlive this, and this outlives the answers that it gave.
  SelectedInference(Inference& below, const ServedNames& names, CallStatistics& statistics,
                    std::function<TimePoint()> now, uint64_t seed);
  ~SelectedInference() override;

  // Once: shows these in the catalog, with the state that their models make of them, from now
  // on. A model or a pipeline of the same name takes the place of an application. The catalog
  // outlives this.
  void serve(std::vector<Application> applications, Catalog& catalog);

  // Of an application: what it learned.
  struct Learned {
    std::string application;
    std::string learns_as;  // Application::learns_as()
    ServedApplication::Learned learned;
  };
  // Before any call: logs shall say of each call of a model how it was selected (Query::selection).
  void describe_selections() { describes_selections_ = true; }
  // After serve(), once, before any call: goes on with these, and keeps changes from now on.
  void restore(std::span<const Learned> learned);
  // What has changed since the last call.
  std::vector<Learned> take_changes();

  Started start(const Query& query, const Caller& caller) override;
  void cancel(CallId call) override;
  Status observe(const Observation& observation) override;

  // Of all applications, by name.
  using Statistics = std::vector<std::pair<const Application*, ApplicationStatistics>>;
  Statistics application_statistics() const;

 private:
  class Call;
  struct Served {
    explicit Served(Application from, uint64_t seed) : application(std::move(from), seed) {}
    ServedApplication application;
    std::atomic<bool> shadowed{false};  // a model has its name
  };
  struct Shard {
    mutable std::mutex mutex;
    std::unordered_map<uint64_t, std::unique_ptr<Call>> calls;  // not answered, by value of CallId
  };

  static constexpr size_t kShards = 16;

  Served* find(std::string_view name) const;
  Shard& shard_of(CallId call) { return shards_[layer_number(call) % kShards]; }
  static uint64_t layer_number(CallId call);
  void on_change(const std::string& name, const Catalog::EntryPtr& entry);
  void update(Served& served);
  void finish(CallId id);
  std::unique_ptr<Answer> answer_of(Call& call);
  std::unique_ptr<Answer> default_answer(Call& call, const CallError& why);

  Inference& below_;
  const ServedNames& names_;
  CallStatistics& statistics_;
  const std::function<TimePoint()> now_;
  const uint64_t seed_;
  bool describes_selections_ = false;
  std::atomic<bool> any_{false};  // applications, which do not change afterwards
  std::map<std::string, std::unique_ptr<Served>, std::less<>> applications_;
  std::map<std::string, std::vector<Served*>, std::less<>> by_model_;
  Catalog* catalog_ = nullptr;
  std::mutex update_mutex_;  // of the thread that changes entries of applications
  std::array<Shard, kShards> shards_;
  std::atomic<uint64_t> next_{0};
  Catalog::Watch watch_;  // uses all of the above
};

}  // namespace foliot

#endif  // FOLIOT_SELECTION_SELECTED_INFERENCE_H_
