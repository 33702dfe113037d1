// ConsoleReporter: a StartupReporter for a person at a terminal, or for a log.
#ifndef FOLIOT_APP_COMMANDS_CONSOLE_REPORTER_H_
#define FOLIOT_APP_COMMANDS_CONSOLE_REPORTER_H_

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "app/commands/progress_bar.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/logging/logger.h"
#include "node/repository/startup_reporter.h"

namespace foliot {

// Writes to the log, and shows progress at a terminal, at most a line a second.
class ConsoleReporter : public StartupReporter {
 public:
  // `log` outlives this. `alone`: there is one model, and if it fails, so does the command, which writes why.
  explicit ConsoleReporter(Logger& log, bool alone = false) : log_(log), alone_(alone) {}
  void on_listening(std::string_view where) override;
  void on_starting(std::string_view model) override;
  void on_compiling(std::string_view model, std::string_view step, double share) override;
  void on_model(std::string_view model, const Status& status) override;
  void on_progress(const StartupProgress& progress) override;
  void on_note(std::string_view note) override;

  // Why the last model that cannot be served cannot; ok: there was none.
  const Status& failure() const { return failure_; }

 private:
  Logger& log_;
  const bool alone_;
  Status failure_;
  ProgressBar bar_;
  std::set<std::string, std::less<>> compiling_;  // or compiled
  TimePoint next_progress_;
};

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_CONSOLE_REPORTER_H_
