// ConsoleReporter: a StartupReporter for a person at a terminal, or for a log.
#ifndef FOLIOT_APP_COMMANDS_CONSOLE_REPORTER_H_
#define FOLIOT_APP_COMMANDS_CONSOLE_REPORTER_H_

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "app/commands/progress_bar.h"
#include "base/time.h"
#include "logging/logger.h"
#include "serving/startup_reporter.h"

namespace foliot {

// Writes to the log, and shows progress at a terminal, at most a line a second.
class ConsoleReporter : public StartupReporter {
 public:
  // `log` outlives this.
  explicit ConsoleReporter(Logger& log) : log_(log) {}
  void on_listening(std::string_view where) override;
  void on_starting(std::string_view model) override;
  void on_compiling(std::string_view model, std::string_view step, double share) override;
  void on_model(std::string_view model, const Status& status) override;
  void on_progress(const StartupProgress& progress) override;
  void on_note(std::string_view note) override;

 private:
  Logger& log_;
  ProgressBar bar_;
  std::set<std::string, std::less<>> compiling_;  // or compiled
  TimePoint next_progress_;
};

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_CONSOLE_REPORTER_H_
