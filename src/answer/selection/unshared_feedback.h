// UnsharedFeedback: what an application learned here and other front ends do not know yet, by
// context, and the revision of the shared state on which it was learned.
//
// Bounded: while the store of the shared states is out of reach for long, what comes beyond
// kObservationsMax is learned here alone, until the state is read again.
//
// Threading: one at a time.
#ifndef FOLIOT_ANSWER_SELECTION_UNSHARED_FEEDBACK_H_
#define FOLIOT_ANSWER_SELECTION_UNSHARED_FEEDBACK_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "answer/selection/selection_policy.h"

namespace foliot {

// Feedback of one call, as its policy learns it.
struct LearnedFeedback {
  Selection selection;
  std::vector<std::optional<double>> losses;
};

class UnsharedFeedback {
 public:
  static constexpr size_t kObservationsMax = 100'000;  // of all contexts

  // Of one context, or of the application ("").
  struct Part {
    uint64_t revision = 0;  // 0: the state here stems from no shared one
    std::deque<std::shared_ptr<const LearnedFeedback>> feedback;
  };

  // False: there is no room.
  bool add(std::string_view context, std::shared_ptr<const LearnedFeedback> feedback);
  // The state of the context here is that of this revision, and what is unshared. Returns the latter.
  const Part& set_revision(const std::string& context, uint64_t revision);
  // All up to `last` is shared, with this revision. No effect if that is not of the context any more.
  void shared(const std::string& context, const std::shared_ptr<const LearnedFeedback>& last, uint64_t revision);
  // Nothing is known of the context any more.
  void forget(const std::string& context);
  void clear();

  // Null: nothing is known of it.
  const Part* find(std::string_view context) const;
  // Contexts with something to share.
  std::vector<std::string> contexts() const;

 private:
  std::map<std::string, Part, std::less<>> parts_;
  size_t observations_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_SELECTION_UNSHARED_FEEDBACK_H_
