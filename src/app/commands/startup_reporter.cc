#include "app/commands/startup_reporter.h"

#include <fmt/format.h>

#include <utility>

namespace foliot {

void ConsoleReporter::on_compiling(std::string_view model, std::string_view step, double share) {
  if (log_.options().format == JournalFormat::kText) return bar_.show(model, step, share);
  if (std::exchange(compiling_, model) == model) return;
  log_.write(Severity::kInfo, fmt::format("compiling {}", model));
}

void ConsoleReporter::on_model(std::string_view model, const Status& status) {
  bar_.clear();
  if (status.ok()) return;
  log_.write(Severity::kError, fmt::format("model '{}' cannot be served: {}", model, status.message()));
}

void ConsoleReporter::on_note(std::string_view note) {
  bar_.clear();
  log_.write(Severity::kWarning, fmt::format("note: {}", note));
}

}  // namespace foliot
