// Arrival trace: the instants of a recorded workload, for ArrivalKind::kReplay.
#ifndef FOLIOT_LOAD_WORKLOAD_ARRIVAL_TRACE_H_
#define FOLIOT_LOAD_WORKLOAD_ARRIVAL_TRACE_H_

#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

// One instant per line, in seconds since the start, ascending; empty lines and
// those that begin with # do not count. Errors: kInvalidArgument naming the line.
Result<std::vector<Duration>> parse_arrival_trace(std::string_view text);

// The same from a file. Errors also: kNotFound, kResourceExhausted above 1 GiB.
Result<std::vector<Duration>> read_arrival_trace(const std::string& path);

}  // namespace foliot

#endif  // FOLIOT_LOAD_WORKLOAD_ARRIVAL_TRACE_H_
