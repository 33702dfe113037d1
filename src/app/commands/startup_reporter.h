// StartupReporter: told what a server or a worker does while it starts.
#ifndef FOLIOT_APP_COMMANDS_STARTUP_REPORTER_H_
#define FOLIOT_APP_COMMANDS_STARTUP_REPORTER_H_

#include <string>
#include <string_view>

#include "app/commands/progress_bar.h"
#include "base/status.h"
#include "journal/journal.h"

namespace foliot {

class StartupReporter {
 public:
  virtual ~StartupReporter() = default;
  // `share`: in [0, 1].
  virtual void on_compiling(std::string_view model, std::string_view step, double share) = 0;
  virtual void on_model(std::string_view model, const Status& status) = 0;
  virtual void on_note(std::string_view note) = 0;
};

// Tells the log, and shows people at a terminal how far it is.
class ConsoleReporter : public StartupReporter {
 public:
  // `log` outlives this.
  explicit ConsoleReporter(Journal& log) : log_(log) {}
  void on_compiling(std::string_view model, std::string_view step, double share) override;
  void on_model(std::string_view model, const Status& status) override;
  void on_note(std::string_view note) override;

 private:
  Journal& log_;
  ProgressBar bar_;
  std::string compiling_;
};

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_STARTUP_REPORTER_H_
