// FeedbackRecord: what a log keeps of feedback on an application's answer: what each model lost,
// and how likely it was to be asked; and the port through which it is kept. From these another
// policy can be judged that would have asked other models (answer/selection/policy_replay.h).
#ifndef FOLIOT_FOUNDATION_CORE_FEEDBACK_RECORD_H_
#define FOLIOT_FOUNDATION_CORE_FEEDBACK_RECORD_H_

#include <optional>
#include <string>
#include <vector>

#include "foundation/base/time.h"

namespace foliot {

struct FeedbackRecord {
  struct Model {
    std::string name;
    // With which it was selected; where several are asked, the weight of its answer. nullopt: it
    // was not available.
    std::optional<double> probability{};
    bool asked = false;
    std::optional<double> loss{};  // in [0, 1]; nullopt: unknown

    bool operator==(const Model&) const = default;
  };

  std::string id;  // the answer's feedback_id
  std::string application;
  std::string policy;   // the name of the one that selected
  std::string context;  // of the call; empty: none
  TimePoint answered;
  TimePoint observed;         // when its feedback came
  std::vector<Model> models;  // all of the application's, in its order

  bool operator==(const FeedbackRecord&) const = default;
};

// Threading: any thread, and it waits for nothing.
class FeedbackSink {
 public:
  virtual ~FeedbackSink() = default;
  virtual void add_feedback(FeedbackRecord record) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_FEEDBACK_RECORD_H_
