// Logger: writes lines for operators and for programs that read them: one line for each
// event, with its time, level and part, as text or as JSON. Output for the person who
// starts a program (progress, "ready:") does not go here.
//
//   2026-11-21T19:00:00.123Z warning controller: worker 'a' at ... is gone: ...
//   {"time":"2026-11-21T19:00:00.123Z","level":"warning","part":"controller","message":"..."}
//
// Bytes from outside cannot begin a line of their own: control characters are escaped.
// Lines that clients can cause are bounded: beyond `lines_per_second_max` the rest of
// that second is left out, and a line gives their number.
//
// No secret belongs into a message; none is ever passed here (edge/requests/gate.h).
//
// Threading: any thread; lines are whole.
#ifndef FOLIOT_FOUNDATION_LOGGING_LOGGER_H_
#define FOLIOT_FOUNDATION_LOGGING_LOGGER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "foundation/base/mutex.h"
#include "foundation/base/time.h"

namespace foliot {

enum class Severity { kDebug, kInfo, kWarning, kError };
enum class LoggerFormat { kText, kJson };

struct LoggerOptions {
  LoggerFormat format = LoggerFormat::kText;
  Severity level = Severity::kInfo;  // lines of a lower level are left out
  std::string part;                  // of Foliot: "controller"
  uint32_t lines_per_second_max = 200;
};

// Takes lines, which end with a line feed, one at a time.
using LoggerSink = std::function<void(std::string_view line)>;

TimePoint logger_now();

class Logger {
 public:
  Logger(LoggerOptions options, LoggerSink sink, std::function<TimePoint()> now = logger_now);
  ~Logger();
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  void write(Severity level, std::string_view message);
  const LoggerOptions& options() const { return options_; }

 private:
  class Backend;
  void put(Severity level, std::string_view message);
  // How many lines were left out before this one, or nullopt: it is left out, too.
  std::optional<uint64_t> admit();

  const LoggerOptions options_;
  const std::function<TimePoint()> now_;
  const std::unique_ptr<Backend> logger_;
  Mutex mutex_;
  TimePoint second_began_ GUARDED_BY(mutex_);
  uint32_t lines_ GUARDED_BY(mutex_) = 0;  // of this second
  uint64_t left_out_ GUARDED_BY(mutex_) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_LOGGING_LOGGER_H_
