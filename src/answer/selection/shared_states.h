// SharedStates: what applications learned, in a store where several front ends learn it together.
// A port; RedisStates is the real one.
//
// A state is of an application ("" as its context) or of one of its contexts. It has the revision
// with which it was written, and revisions of an application only grow, even where the store has lost
// what it had. A write names the revision
// from which it was computed, and is made only if the state still has that one (compare and set): so
// nothing that another front end learned is lost.
//
// Threading: one at a time.
#ifndef FOLIOT_ANSWER_SELECTION_SHARED_STATES_H_
#define FOLIOT_ANSWER_SELECTION_SHARED_STATES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foundation/base/status.h"

namespace foliot {

struct SharedState {
  std::string context;
  uint64_t revision = 0;
  std::string bytes;  // to_bytes(SelectionState)
};

// Writes of one front end to the states of one application.
struct StateBatch {
  uint64_t number = 0;  // one more than that of the writer's last batch for this application
  // Contexts beyond these go, those first that were not written for longest.
  uint64_t contexts_max = 0;
  std::vector<SharedState> writes;  // `revision`: of the state from which it was computed; 0: of none
};

class SharedStates {
 public:
  // Of one read, and of one batch.
  static constexpr size_t kStatesMax = 1000;

  virtual ~SharedStates() = default;

  // The first of those that were written after `revision`, in the order of their revisions, at most
  // kStatesMax. `application` names what learns alike. Errors: kUnavailable naming the store.
  virtual Result<std::vector<SharedState>> read(const std::string& application, uint64_t revision) = 0;

  struct Written {
    uint64_t revision = 0;  // of what was written, or of what is there in its place; 0: nothing
    // Not written, since another was: that one's; empty where there is none.
    std::optional<std::string> instead{};
  };
  // One result for each write. The same batch again changes nothing and has the same results, so that
  // it may be sent again where no answer came. Errors: kUnavailable naming the store.
  virtual Result<std::vector<Written>> write(const std::string& application, const std::string& writer,
                                             const StateBatch& batch) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_SELECTION_SHARED_STATES_H_
