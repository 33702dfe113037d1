// ServerSettings: what the logging and trace extensions of the protocol show of a server,
// the same over HTTP and gRPC. They are fixed when it starts: a client may ask for the
// values that they have, and is refused others.
#ifndef FOLIOT_EDGE_REQUESTS_SERVER_SETTINGS_H_
#define FOLIOT_EDGE_REQUESTS_SERVER_SETTINGS_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "foundation/base/status.h"

namespace foliot {

// Which lines the log has besides errors.
struct LogLevels {
  bool info = true;
  bool warning = true;
};

using LogSetting = std::variant<bool, uint64_t, std::string>;
// By the protocol's names.
std::map<std::string, LogSetting> log_settings(const LogLevels& levels);
// Whether a client may set it to this value: it has it already. Errors: kInvalidArgument
// for a name that is no setting, naming those that are; kUnimplemented for other values.
Status check_log_setting(const LogLevels& levels, std::string_view name, const LogSetting& value);

// TraceExport says whether spans of calls go to a collector, by OTLP, and of how many calls.
struct TraceExport {
  bool on = false;
  double share = 0;  // of the calls that bring no traceparent, 0 to 1
};

// By the protocol's names. One in `trace_rate` calls is traced; "0": those alone whose traceparent says so.
std::map<std::string, std::vector<std::string>> trace_settings(const TraceExport& traces);
// As check_log_setting(). Empty: the default.
Status check_trace_setting(const TraceExport& traces, std::string_view name, const std::vector<std::string>& values);

}  // namespace foliot

#endif  // FOLIOT_EDGE_REQUESTS_SERVER_SETTINGS_H_
