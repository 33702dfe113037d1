// ServedApplication: an application while it is served: its interface, what its policy has
// learned, the answers that may get feedback, and its statistics.
//
// Its definition may be replaced while calls are under way: each ends by the one with which it
// was selected.
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
#include "core/feedback_record.h"
#include "inference/inference.h"
#include "inference/prediction.h"
#include "selection/application.h"
#include "selection/application_interface.h"
#include "selection/context_states.h"
#include "selection/feedback_store.h"
#include "selection/running_means.h"
#include "selection/shared_states.h"
#include "selection/unshared_feedback.h"

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
  uint64_t expired = 0;   // of answers and refusals: those that were due before all models had ended
  uint64_t feedbacks = 0;
  uint64_t contexts = 0;
  uint64_t unshared = 0;      // of the feedbacks: those for whose sharing there was no room
  std::vector<Model> models;  // of the application:
  std::shared_ptr<const Application> application;
};

// The default outputs of an application, of so many rows. nullopt: it has none.
std::optional<Prediction> default_prediction(const Application& application, const ModelInfo& info, uint64_t rows);

class ServedApplication {
 public:
  ServedApplication(Application application, uint64_t seed);

  // As it is defined now.
  std::shared_ptr<const Application> application() const;
  // Another definition from now on. What was learned is kept if it learns as before
  // (Application::learns_as()), and answers may still get feedback if, besides, the same output is
  // compared. REQUIRES: it can be served, and `interface` is of it.
  void redefine(Application application, ApplicationInterface interface);
  // Replaces what its models make of it.
  void update(ApplicationInterface interface);

  // What is asked for one call, by the definition of that moment.
  struct Selected {
    std::shared_ptr<const Application> application;
    Selection selection;
  };
  // nullopt: none of its models is available.
  std::optional<Selected> select(std::string_view context);

  // One answer of those that were selected, in their order; null: missing.
  using Predictions = std::span<const Prediction* const>;
  struct Combined {
    Combination combination;
    std::string feedback_id;  // empty: the application has another definition, which takes none of it
    uint64_t default_rows = 0;
  };
  // Makes the answer of a call: combines, replaces rows of little confidence, and keeps what
  // feedback is compared with. REQUIRES: one prediction at least.
  Combined combine(const Selected& selected, Predictions predictions, bool batching, TenantId tenant,
                   std::string_view context, TimePoint now);
  // An answer that is the default, or none.
  void count_default();
  void count_refused();
  // It is due, and models that were asked have not ended.
  void count_expired();

  // Learns; errors as Inference::observe(). `log` null: it is not logged.
  Status observe(const Observation& observation, TimePoint now, FeedbackSink* log = nullptr);

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

  // Before it is served: keeps what is learned until others know it (state_exchange.h).
  void share();
  // Names what learns alike, here and elsewhere.
  std::string shared_name() const;
  // A state with all that was learned here, for others.
  struct Unshared {
    SharedState state;  // its revision is the one from which it was computed
    std::shared_ptr<const LearnedFeedback> last;
  };
  // Of at most so many contexts. `name`: nothing unless it is shared_name().
  std::vector<Unshared> unshared(const std::string& name, size_t contexts_max) const;
  // It is known to others by this revision.
  void set_shared(const Unshared& known, uint64_t revision);
  // Goes on from a state that others know, with what was learned here and they do not know. One
  // without bytes: they know none, and the state here stays. No effect unless `name` is shared_name().
  // Errors: kInvalidArgument if it is no state of this policy; the next write takes its place.
  Status take(const std::string& name, const SharedState& state);

 private:
  // Whether what calls of this definition bring is of use to the one of now. REQUIRES: mutex_ is held.
  bool takes_feedback_of(const Application& application) const;
  void begin_anew();
  void note_change(const std::string& context);
  void note_unshared(const AnsweredCall& call, const std::vector<std::optional<double>>& losses);
  SelectionState& state_of(const std::string& context);
  std::string name_of_learning() const;
  Result<std::vector<std::optional<double>>> losses_of(const Observation& observation, const AnsweredCall& call) const;
  Result<std::vector<std::optional<double>>> sent_losses(const Observation& observation,
                                                         const AnsweredCall& call) const;

  mutable std::mutex mutex_;  // guards what follows
  std::shared_ptr<const Application> application_;
  std::vector<bool> available_;
  Random random_;
  ContextStates states_;
  FeedbackStore feedback_;
  std::vector<RunningMeans> means_;
  ApplicationStatistics statistics_;
  bool keeps_changes_ = false;
  std::set<std::string> changed_;  // contexts
  bool shares_ = false;
  UnsharedFeedback unshared_;
};

}  // namespace foliot

#endif  // FOLIOT_SELECTION_SERVED_APPLICATION_H_
