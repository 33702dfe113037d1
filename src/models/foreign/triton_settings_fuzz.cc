// libFuzzer target: any bytes as the config.pbtxt of a model.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "foundation/base/check.h"
#include "foundation/core/action.h"
#include "models/foreign/triton_settings.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > foliot::kForeignBytesMax) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto settings = foliot::parse_triton_settings(text, "config.pbtxt", "fuzz");
  if (!settings.ok()) {
    FOLIOT_CHECK(settings.status().message().starts_with("config.pbtxt"));
    return 0;
  }
  FOLIOT_CHECK(settings->notes.size() <= foliot::kForeignNotesMax);
  if (settings->batch_sizes) {
    const auto& sizes = settings->batch_sizes->value;
    FOLIOT_CHECK(!sizes.empty() && sizes.front() == 1 && sizes.back() <= foliot::kCompiledBatchSizeMax);
  }
  return 0;
}
