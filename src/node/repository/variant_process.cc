#include "node/repository/variant_process.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "engine/container/container_launch.h"
#include "engine/container/container_options.h"
#include "foundation/base/escaped_text.h"
#include "foundation/base/units.h"
#include "foundation/platform/clock.h"
#include "foundation/process/child_process.h"

namespace foliot {
namespace {

constexpr size_t kComplaintBytesMax = 4096;
constexpr std::string_view kWrongSource = "exit code 2";

// The last lines, as one.
std::string complaint(std::string text) {
  if (text.size() > kComplaintBytesMax) text.erase(0, text.size() - kComplaintBytesMax);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return escaped(text);
}

std::string last_line(std::string_view text) {
  text = text.substr(0, text.find_last_not_of('\n') + 1);
  const size_t end_of_line = text.rfind('\n');
  return escaped(end_of_line == std::string_view::npos ? text : text.substr(end_of_line + 1));
}

ChildOptions variant_process(const RegistrationFolder& folder, const VariantProcessOptions& options) {
  ContainerOptions container;
  container.name = "variants";
  container.package = options.package;
  ChildOptions child;
  child.command = options.launcher;
  child.environment = container_environment(container, folder.made());
  child.environment.push_back("FOLIOT_VARIANTS_OUTPUT=" + folder.made().string());
  child.input = encode_launch({.python = options.python,
                               .module = "foliot.variant_maker",
                               .folder = folder.source(),
                               .package = options.package,
                               .temporary = folder.made(),
                               .memory_bytes = options.memory_bytes,
                               .namespaces = true});
  child.namespaces.emplace();
  return child;
}

}  // namespace

Status VariantProcess::make(const RegistrationFolder& folder, const JobContext& context) {
  FOLIOT_ASSIGN_OR_RETURN(ChildProcess child, ChildProcess::start(variant_process(folder, options_)));
  std::string printed, complained;
  const TimePoint deadline = monotonic_now() + options_.time_limit;
  while (child.listen(Duration::milliseconds(100), printed, complained)) {
    printed.clear();
    if (complained.size() > 2 * kComplaintBytesMax) complained.erase(0, complained.size() - kComplaintBytesMax);
    if (context.is_over()) return Status::unavailable("the run was ended while variants were made");
    if (monotonic_now() < deadline) continue;
    return Status::resource_exhausted(
        fmt::format("making variants took longer than {}", format_duration(options_.time_limit)));
  }
  if (child.succeeded()) return Status();
  if (child.ending() == kWrongSource) return Status::invalid_argument(last_line(complained));
  return Status::invalid_argument(fmt::format("making variants failed: {}: {}", child.ending(), complaint(complained)));
}

}  // namespace foliot
