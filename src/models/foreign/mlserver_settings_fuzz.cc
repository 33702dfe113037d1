// libFuzzer target: any bytes as the model-settings.json of a model.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "foundation/base/check.h"
#include "foundation/core/action.h"
#include "models/foreign/mlserver_settings.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto settings = foliot::parse_mlserver_settings(text, "model-settings.json");
  if (!settings.ok()) {
    FOLIOT_CHECK(settings.status().message().starts_with("model-settings.json"));
    return 0;
  }
  FOLIOT_CHECK(settings->notes.size() <= foliot::kForeignNotesMax);
  if (settings->batch_sizes) FOLIOT_CHECK(settings->batch_sizes->value.back() <= foliot::kCompiledBatchSizeMax);
  return 0;
}
