// StateExchange: brings what this front end learned of its applications to the store of shared
// states, and what others learned from there.
//
// The state of an application is that of the store, and on top of it what was learned here since.
// A round reads what others wrote, learns again on top of it what is unshared, and writes the
// result by compare-and-set; where another was faster, it starts over from that one's. A batch of
// writes of which no answer came is sent again as it was, so that nothing is learned twice.
//
// Threading: one at a time. Applications are served meanwhile.
#ifndef FOLIOT_ANSWER_SELECTION_STATE_EXCHANGE_H_
#define FOLIOT_ANSWER_SELECTION_STATE_EXCHANGE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "answer/selection/served_application.h"
#include "answer/selection/shared_states.h"
#include "foundation/base/status.h"

namespace foliot {

class StateExchange {
 public:
  using Applications = std::vector<std::shared_ptr<ServedApplication>>;

  // `writer`: of all front ends, at all times, this one's alone. `applications` returns those that
  // are served now. The store outlives this.
  StateExchange(std::function<Applications()> applications, SharedStates& states, std::string writer)
      : applications_(std::move(applications)), states_(states), writer_(std::move(writer)) {}

  // A round for each application. Errors: the store's, and what was learned goes with a later
  // round; kInvalidArgument for a state of the store that is not of its policy.
  Status exchange();

 private:
  // With the states of one name.
  struct Progress {
    uint64_t revision = 0;  // of the last state that was read
    StateBatch batch;       // the last one
    // What it wrote, while no answer has come.
    std::vector<ServedApplication::Unshared> unanswered;
  };
  // Of one application. Errors: the store's. `damaged`: of a state that is not of the policy.
  Status exchange(ServedApplication& application, const std::string& name, Progress& progress, Status& damaged);
  Status read(ServedApplication& application, const std::string& name, Progress& progress, Status& damaged);
  // Sends the unanswered batch.
  Status write(ServedApplication& application, const std::string& name, Progress& progress, Status& damaged);

  const std::function<Applications()> applications_;
  SharedStates& states_;
  const std::string writer_;
  std::map<std::string, Progress> progress_;  // by shared_name() of what is served
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_SELECTION_STATE_EXCHANGE_H_
