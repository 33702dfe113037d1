#include "app/commands/console_reporter.h"

#include <fmt/format.h>

#include "app/commands/logger_flags.h"
#include "foundation/platform/clock.h"

namespace foliot {
namespace {

constexpr Duration kProgressInterval = Duration::seconds(1);

}  // namespace

void ConsoleReporter::on_listening(std::string_view where) {
  bar_.clear();
  say(log_, fmt::format("listening: {}", where));
}

void ConsoleReporter::on_progress(const StartupProgress& progress) {
  const TimePoint now = monotonic_now();
  if (progress.complete() || now < next_progress_) return;
  next_progress_ = now + kProgressInterval;
  bar_.clear();
  const std::string broken = progress.broken == 0 ? "" : fmt::format(", {} cannot be", progress.broken);
  log_.write(Severity::kInfo,
             fmt::format("starting: {} of {} models are served{}", progress.served, progress.total, broken));
}

void ConsoleReporter::on_starting(std::string_view model) {
  bar_.clear();
  say(log_, fmt::format("starting {}", model));
}

void ConsoleReporter::on_compiling(std::string_view model, std::string_view step, double share) {
  if (log_.options().format == LoggerFormat::kText) return bar_.show(model, step, share);
  if (!compiling_.emplace(model).second) return;
  log_.write(Severity::kInfo, fmt::format("compiling {}", model));
}

void ConsoleReporter::on_model(std::string_view model, const Status& status) {
  bar_.clear();
  if (status.ok()) return;
  failure_ = Status(status.code(), fmt::format("model '{}' cannot be served: {}", model, status.message()));
  if (!alone_) log_.write(Severity::kError, failure_.message());
}

void ConsoleReporter::on_note(std::string_view note) {
  bar_.clear();
  log_.write(Severity::kWarning, fmt::format("note: {}", note));
}

}  // namespace foliot
