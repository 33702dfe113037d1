// MonitorEvent: one thing that the controller did, as the monitor keeps it: in place, without
// anything that it would have to own.
//
// Instants are of the controller's clock; infinite: there is none.
#ifndef FOLIOT_OBSERVE_MONITOR_MONITOR_EVENT_H_
#define FOLIOT_OBSERVE_MONITOR_MONITOR_EVENT_H_

#include <cstdint>
#include <variant>

#include "foundation/base/time.h"
#include "foundation/core/action.h"
#include "foundation/core/ids.h"
#include "foundation/core/request.h"

namespace foliot {

// An action was sent, or is over; the second says again what the first said.
struct MonitorAction {
  ActionId id;
  DeviceId device;
  ActionType type = ActionType::kInfer;
  bool over = false;
  OutcomeStatus status = OutcomeStatus::kDone;  // once it is over
  uint8_t lane = 0;                             // INFER: the first of `lanes`
  uint8_t lanes = 0;
  uint16_t batch_size = 0;  // likewise
  uint16_t rows = 0;
  const char* model = "";  // lives as long as the Monitor
  TimePoint sent = TimePoint::infinite_future();
  TimePoint expected_begin = TimePoint::infinite_future();
  Duration expected;
  // On its executor, as the worker measured; of a refusal, when it was refused.
  TimePoint begin = TimePoint::infinite_future();
  TimePoint end = TimePoint::infinite_future();
};

// A request (row) was answered or refused.
struct MonitorRequest {
  RequestId id;
  const char* model = "";  // likewise
  Refusal refusal = Refusal::kNone;
  bool cold_start = false;
  uint16_t batch_size = 0;  // 0: it did not run
  DeviceId device;          // of one that ran
  ActionId action;          // likewise
  TimePoint arrival;
  TimePoint deadline = TimePoint::infinite_future();  // the controller's
  TimePoint finished;
  TimePoint earliest_completion = TimePoint::infinite_future();
  TimePoint exec_begin = TimePoint::infinite_future();
  Duration input;
  Duration exec;
  Duration output;
};

using MonitorEvent = std::variant<MonitorAction, MonitorRequest>;

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_MONITOR_MONITOR_EVENT_H_
