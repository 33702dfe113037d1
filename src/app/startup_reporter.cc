#include "app/startup_reporter.h"

#include <fmt/format.h>

namespace foliot {

void ConsoleReporter::on_compiling(std::string_view model, std::string_view step, double share) {
  bar_.show(model, step, share);
}

void ConsoleReporter::on_model(std::string_view model, const Status& status) {
  bar_.clear();
  if (!status.ok()) fmt::print(stderr, "model '{}' cannot be served: {}\n", model, status.message());
}

void ConsoleReporter::on_note(std::string_view note) {
  bar_.clear();
  fmt::print(stderr, "note: {}\n", note);
}

}  // namespace foliot
