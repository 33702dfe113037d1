// Log format: the form of a log on disk: two files of comma-separated values, and a third if
// there was feedback, one line per record, the first line naming the fields.
//
// Times are in microseconds with three decimals, so nothing is lost; instants
// count from the log's origin. What there is none of is empty. A name with a comma
// or a quotation mark in it stands in quotation marks, as usual; control
// characters in names become '?', and clients' ids are escaped (escaped_text.h). A line
// "# dropped N" says that N records are missing at that place.
//
// Versions: fields are only ever added behind the others, so the first line says which
// there are, and a log of an earlier version is read as one that lacks the later fields.
#ifndef FOLIOT_OBSERVE_REQUEST_LOG_LOG_FORMAT_H_
#define FOLIOT_OBSERVE_REQUEST_LOG_LOG_FORMAT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "observe/request_log/record.h"
#include "observe/request_log/record_memory.h"

namespace foliot {

// Record: RequestRecord, ActionRecord or FeedbackRecord.
template <typename Record>
struct LogFormat {
  // The files are STEM.csv, and STEM.previous.csv with what came before.
  static constexpr std::string_view kStem = std::is_same_v<Record, RequestRecord>  ? "requests"
                                            : std::is_same_v<Record, ActionRecord> ? "actions"
                                                                                   : "feedback";
  static std::string header();  // without the line's end
  // How many fields a log with this first line has; nullopt: it is no such log's, or a
  // later version's.
  static std::optional<size_t> fields_in(std::string_view header);
  // Appends the line and its end.
  static void append(const Record& record, TimePoint origin, std::string& to);
  // The record holds views of `memory`; of a line with `fields` fields. Errors:
  // kInvalidArgument saying which field is wrong.
  static Result<Record> parse(std::string_view line, RecordMemory& memory, size_t fields = SIZE_MAX);
};

std::string dropped_line(uint64_t count);
std::optional<uint64_t> parse_dropped_line(std::string_view line);

extern template struct LogFormat<RequestRecord>;
extern template struct LogFormat<ActionRecord>;
extern template struct LogFormat<FeedbackRecord>;

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_REQUEST_LOG_LOG_FORMAT_H_
