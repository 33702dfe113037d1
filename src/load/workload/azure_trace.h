// Azure traces: reader of the traces of Azure Functions that Microsoft published, in
// their real formats:
//
//   2019: invocations per function and minute. CSV, one file per day, the columns
//         HashOwner,HashApp,HashFunction,Trigger,1,...,1440.
//   2021: every invocation. CSV, the columns app,func,end_timestamp,duration, in
//         seconds, in the order of their start.
//
// A trace is held in memory in a compact form; its invocations are made one by one
// while it is replayed, so that a trace scaled up takes no more.
#ifndef FOLIOT_LOAD_WORKLOAD_AZURE_TRACE_H_
#define FOLIOT_LOAD_WORKLOAD_AZURE_TRACE_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "load/workload/function_trace.h"

namespace foliot {

struct TraceOptions {
  // The part of the trace to replay; what lies outside is skipped.
  Duration from;
  Duration length = Duration::max();
  // Invocations per second on average over that part: all functions are scaled
  // alike. Zero: as recorded.
  double rate = 0;
};

// `files`: one or more days, in order; each is as long as its columns say. A
// function is known by its app and its own hash; rows of the same add up. Where in
// its minute an invocation was is drawn evenly.
// Errors: kNotFound; kInvalidArgument naming file, line and minute: a count that is
// missing, negative or no number, a column of minutes left out.
Result<std::shared_ptr<const FunctionTrace>> read_azure_2019(const std::vector<std::string>& files,
                                                             const TraceOptions& options);

// The same where the text of each day, and what errors call it, is given.
struct TraceText {
  std::string name;
  std::string_view text;
};
Result<std::shared_ptr<const FunctionTrace>> parse_azure_2019(const std::vector<TraceText>& days,
                                                              const TraceOptions& options);

// Where the rate is scaled up, copies of an invocation follow it within a second.
// Errors: kNotFound; kInvalidArgument naming file and line, also where an
// invocation begins more than 1 ms before the one above it (the format rounds).
Result<std::shared_ptr<const FunctionTrace>> read_azure_2021(const std::string& file, const TraceOptions& options);
Result<std::shared_ptr<const FunctionTrace>> parse_azure_2021(const TraceText& text, const TraceOptions& options);

}  // namespace foliot

#endif  // FOLIOT_LOAD_WORKLOAD_AZURE_TRACE_H_
