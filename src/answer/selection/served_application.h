// ServedApplication: an application while it is served: its interface, what its policy has
// learned, the answers that may get feedback, and its statistics.
//
// Its definition may be replaced while calls are under way: each ends by the one with which it
// was selected.
//
// Threading: any. Time is an argument; one seed gives the same choices.
#ifndef FOLIOT_ANSWER_SELECTION_SERVED_APPLICATION_H_
#define FOLIOT_ANSWER_SELECTION_SERVED_APPLICATION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "answer/inference/inference.h"
#include "answer/inference/prediction.h"
#include "answer/selection/application.h"
#include "answer/selection/application_interface.h"
#include "answer/selection/context_states.h"
#include "answer/selection/feedback_store.h"
#include "answer/selection/own_feedback.h"
#include "answer/selection/own_policy.h"
#include "answer/selection/running_means.h"
#include "answer/selection/shared_states.h"
#include "answer/selection/unshared_feedback.h"
#include "foundation/base/mutex.h"
#include "foundation/base/random.h"
#include "foundation/base/time.h"
#include "foundation/core/feedback_record.h"

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
  uint64_t unshared = 0;  // of the feedbacks: those for whose sharing there was no room
  // Of a policy of the user's own:
  bool own_in_force = false;   // else its fallback chooses
  uint64_t own_failures = 0;   // of its process, after each of which that is started again
  uint64_t own_unlearned = 0;  // observations that only the fallback learned: no room, or the process failed on them
  std::vector<Model> models;   // of the application:
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
    bool is_probe = false;  // of whether suspected models are to blame
  };
  // nullopt: none of its models is available.
  std::optional<Selected> select(std::string_view context);
  // One of the models that the call has not asked yet, in place of one that gave no answer. nullopt: there
  // is none, or too many such tries were in vain lately: these are at most kTriesInVainMax more than
  // calls that were answered, so that an overload is not made worse.
  std::optional<Selection> select_again(const Selected& selected, std::span<const uint32_t> asked,
                                        std::string_view context);

  // The end of a call that asks one model at a time.
  struct Tries {
    std::vector<Selection> missed;     // whose model is to blame for having no answer, in order
    std::optional<uint32_t> answered;  // the model that did
    bool cancelled = false;
    Duration given{};  // from its arrival to its deadline
    Duration taken{};  // from its arrival to its end
  };
  // After select(), once. A model without an answer has a loss of 1 if another one answered the same
  // call. Where others were asked and did not answer either, the call or the machine is to blame, and
  // no model has a loss. Where no other was asked, the model is suspected: the next call asks another
  // one, and its end decides. Of models that had less time than that call has taken, nothing is learned: in a
  // microsecond none can answer.
  void conclude(const Selected& selected, std::string_view context, const Tries& tries);

  // One answer of those that were selected, in their order; null: missing.
  using Predictions = std::span<const Prediction* const>;
  struct Combined {
    Combination combination;
    std::string feedback_id;  // empty: the application has another definition, which takes none of it
    uint64_t default_rows = 0;
  };
  // Makes the answer of a call: combines, replaces rows of little confidence, and keeps what
  // feedback is compared with. REQUIRES: one prediction at least.
  // `failed`: those of several whose prediction is missing by their own fault. With feedback they have a
  // loss of 1.
  Combined combine(const Selected& selected, Predictions predictions, std::vector<uint32_t> failed, bool batching,
                   TenantId tenant, std::string_view context, TimePoint now);
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

  // What the process of a policy of the user's own is asked: to make a state, or what it has after this feedback.
  struct OwnWork {
    std::shared_ptr<const OwnPolicy> policy;
    std::string context;
    bool begins = false;        // makes the state
    std::vector<double> state;  // before the feedback
    std::vector<OwnFeedback::Feedback> feedback;
  };
  // Null: its policy is compiled in.
  std::shared_ptr<const OwnPolicy> own_policy() const;
  // The first for a process: makes or confirms the application's state, without feedback.
  std::optional<OwnWork> first_own_work() const;
  // Of what waits, at most so many observations. nullopt: none, or there is no own policy.
  std::optional<OwnWork> take_own_work(size_t feedback_max);
  // What the process made of it, from which the policy selects from now on. Ignored if the policy is another one
  // meanwhile, or the context is gone.
  void take_own_part(const OwnWork& work, const OwnPolicy::Part& part);
  // Its process is gone, or failed on `lost` observations: the fallback selects.
  void fail_own(size_t lost);

  static constexpr uint32_t kTriesInVainMax = 100;

 private:
  struct Suspect {
    Selection selection;
    std::string context;
    Duration given;
  };
  static constexpr size_t kSuspectsMax = 1000;  // beyond, misses count for nothing

  // Returns whether what calls of this definition bring is of use to the present one.
  bool takes_feedback_of(const Application& application) const REQUIRES(mutex_);
  // Whether its policy and models are those of now.
  bool is_learned_alike(const Application& application) const REQUIRES(mutex_);
  Status learn(const AnsweredCall& call, const std::vector<std::optional<double>>& losses) REQUIRES(mutex_);
  void begin_anew() REQUIRES(mutex_);
  void note_change(const std::string& context) REQUIRES(mutex_);
  void note_unshared(const std::string& context, const std::shared_ptr<const LearnedFeedback>& feedback)
      REQUIRES(mutex_);
  void learn_miss(const Selection& selection, const std::string& context) REQUIRES(mutex_);
  std::optional<Selection> select_probe() REQUIRES(mutex_);
  Selection choose(const SelectionState& state, const std::vector<bool>& available, Random& random) const
      REQUIRES(mutex_);
  void note_own(const std::string& context, const std::shared_ptr<const LearnedFeedback>& feedback) REQUIRES(mutex_);
  void decide_suspects(const Tries& probe) REQUIRES(mutex_);
  // As available_, without these; none: empty.
  std::vector<bool> available_without(std::span<const uint32_t> models) const REQUIRES(mutex_);
  SelectionState& state_of(const std::string& context) REQUIRES(mutex_);
  std::string name_of_learning() const REQUIRES(mutex_);
  Result<std::vector<std::optional<double>>> losses_of(const Observation& observation, const AnsweredCall& call) const
      REQUIRES(mutex_);
  Result<std::vector<std::optional<double>>> sent_losses(const Observation& observation, const AnsweredCall& call) const
      REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::shared_ptr<const Application> application_ GUARDED_BY(mutex_);
  std::vector<bool> available_ GUARDED_BY(mutex_);
  Random random_ GUARDED_BY(mutex_);
  ContextStates states_ GUARDED_BY(mutex_);
  FeedbackStore feedback_ GUARDED_BY(mutex_);
  std::vector<RunningMeans> means_ GUARDED_BY(mutex_);
  ApplicationStatistics statistics_ GUARDED_BY(mutex_);
  uint32_t tries_left_ GUARDED_BY(mutex_) = kTriesInVainMax;
  // Of each model, the position of its last answer among all; 0: none.
  std::vector<uint64_t> last_answers_ GUARDED_BY(mutex_);
  uint64_t answers_in_order_ GUARDED_BY(mutex_) = 0;
  std::vector<Suspect> suspects_ GUARDED_BY(mutex_);
  bool probing_ GUARDED_BY(mutex_) = false;  // a call that will decide of them is under way
  bool keeps_changes_ GUARDED_BY(mutex_) = false;
  std::set<std::string> changed_ GUARDED_BY(mutex_);  // contexts
  bool shares_ GUARDED_BY(mutex_) = false;
  UnsharedFeedback unshared_ GUARDED_BY(mutex_);
  OwnFeedback own_feedback_ GUARDED_BY(mutex_);  // empty without a policy of the user's own
  bool own_in_force_ GUARDED_BY(mutex_) = false;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_SELECTION_SERVED_APPLICATION_H_
