// ServedApplication: an application while it is served: its interface, what its policy has
// learned, the answers that may get feedback, and its statistics.
//
// Threading: any. Time is an argument; one seed gives the same choices.
#ifndef FOLIOT_SELECTION_SERVED_APPLICATION_H_
#define FOLIOT_SELECTION_SERVED_APPLICATION_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "inference/inference.h"
#include "inference/prediction.h"
#include "selection/application.h"
#include "selection/application_interface.h"
#include "selection/context_states.h"
#include "selection/feedback_store.h"
#include "selection/running_means.h"

namespace foliot {

struct ApplicationStatistics {
  struct Model {
    uint64_t selections = 0;
    uint64_t missing = 0;    // asked, and no answer in time
    uint64_t feedbacks = 0;  // with a loss of this model
    double losses = 0;       // their sum
    double weight = 0;       // in the application's state, were it asked now
  };
  uint64_t answers = 0;
  uint64_t refusals = 0;
  uint64_t defaults = 0;  // of the answers: with a default output, of some rows at least
  uint64_t partial = 0;   // of the answers: without some of the models asked
  uint64_t feedbacks = 0;
  uint64_t contexts = 0;
  std::vector<Model> models;
};

class ServedApplication {
 public:
  ServedApplication(Application application, uint64_t seed);

  const Application& application() const { return application_; }
  // Replaces what its models make of it.
  void update(ApplicationInterface interface);

  // What is asked for one call. nullopt: none of its models is available.
  std::optional<Selection> select(std::string_view context);

  // One answer of those that were selected, in their order; null: missing.
  using Predictions = std::span<const Prediction* const>;
  struct Combined {
    Combination combination;
    std::string feedback_id;
    uint64_t default_rows = 0;
  };
  // Makes the answer of a call: combines, replaces rows of little confidence, and keeps what
  // feedback is compared with. REQUIRES: one prediction at least.
  Combined combine(const Selection& selection, Predictions predictions, bool batching, TenantId tenant,
                   std::string_view context, TimePoint now);
  // The default outputs, of so many rows. nullopt: it has none.
  std::optional<Prediction> defaults(const ModelInfo& info, uint64_t rows) const;
  // An answer that is the default, or none.
  void count_default();
  void count_refused();

  // Learns; errors as Inference::observe().
  Status observe(const Observation& observation, TimePoint now);

  ApplicationStatistics statistics() const;

  // What was learned, of the application ("") and of contexts; nullopt: the context is gone.
  struct Learned {
    std::string context;
    std::optional<std::string> state;
  };
  // Before it is served: goes on with what was learned, the last used context last, and keeps
  // changes from now on. What is not of this policy is left out.
  void restore(std::span<const Learned> learned);
  // What has changed since the last call, or restore().
  std::vector<Learned> take_changes();

 private:
  void note_change(const std::string& context);
  Result<std::vector<std::optional<double>>> losses_of(const Observation& observation, const AnsweredCall& call) const;
  Result<std::vector<std::optional<double>>> sent_losses(const Observation& observation,
                                                         const AnsweredCall& call) const;
  void replace_row(Prediction& prediction, uint64_t row, uint64_t rows) const;

  const Application application_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<bool> available_;
  Random random_;
  ContextStates states_;
  FeedbackStore feedback_;
  std::vector<RunningMeans> means_;
  ApplicationStatistics statistics_;
  bool keeps_changes_ = false;
  std::set<std::string> changed_;  // contexts
};

}  // namespace foliot

#endif  // FOLIOT_SELECTION_SERVED_APPLICATION_H_
