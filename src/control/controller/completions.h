// Completions of requests: what a front end gets of a request that is refused, or that ran.
//
// Threading: pure functions.
#ifndef FOLIOT_CONTROL_CONTROLLER_COMPLETIONS_H_
#define FOLIOT_CONTROL_CONTROLLER_COMPLETIONS_H_

#include <cstdint>
#include <string>

#include "control/controller/request_table.h"
#include "foundation/base/time.h"
#include "foundation/core/action.h"
#include "foundation/core/request.h"

namespace foliot {

Completion refusal_of(const Request& request, Refusal reason, TimePoint earliest_completion, TimePoint now);
// For the client of a refused request: what waits in its stead, with a deadline; empty: nothing does.
std::string queue_detail(const CountByClass& waiting);
// Of row `index` of an action that is done: kLate if that is after the request's time.
Completion answer_of(const RequestTable::Entry& row, const Action& action, const Outcome& outcome, uint32_t index,
                     TimePoint now);

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_COMPLETIONS_H_
