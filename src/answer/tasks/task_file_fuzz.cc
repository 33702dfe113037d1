// libFuzzer target: any text, read as a task.toml, and as the accuracies that it names.
#include <cstddef>
#include <cstdint>
#include <string>

#include "answer/tasks/task_file.h"
#include "foundation/base/check.h"
#include "foundation/core/task_info.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const foliot::TaskSpec spec = foliot::parse_task(
      "fuzz", "task.toml", text, [&](const std::string&) { return foliot::parse_accuracies(text, "accuracies.toml"); });
  if (!spec.status.ok()) {
    FOLIOT_CHECK(spec.status.code() == foliot::StatusCode::kInvalidArgument && !spec.status.message().empty());
    return 0;
  }
  FOLIOT_CHECK(!spec.variants.empty() && spec.variants.size() <= foliot::kTaskVariantsMax);
  double last = 0;
  for (const foliot::VariantSpec& variant : spec.variants) {
    FOLIOT_CHECK(variant.accuracy >= last && variant.accuracy <= 1 && !variant.model.empty());
    last = variant.accuracy;
  }
  FOLIOT_CHECK(spec.accuracy <= last);
  return 0;
}
