// Fuzzes JpegDecoder: whatever the bytes are, it decodes them or fails, within its memory.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/device/cpu/jpeg_decoder.h"
#include "foundation/base/check.h"

namespace {

struct alignas(64) Line {
  std::byte bytes[64];
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foliot;
  static JpegDecoder decoder;
  const JpegTarget target{.width = 24,
                          .height = 17,
                          .fit = static_cast<JpegFit>(size % 3),
                          .pad_value = 3,
                          .pixels_max = uint64_t{1} << 18};
  static std::vector<Line> memory(JpegDecoder::memory_bytes(target) / sizeof(Line));
  std::vector<std::byte> image(target.bytes()), again(target.bytes());
  const auto jpeg = std::as_bytes(std::span(data, size));
  const JpegError error = decoder.decode(jpeg, target, std::as_writable_bytes(std::span(memory)), image);
  JpegDecoder fresh;
  FOLIOT_CHECK(fresh.decode(jpeg, target, std::as_writable_bytes(std::span(memory)), again) == error);
  FOLIOT_CHECK(error != JpegError::kNone || image == again);
  return 0;
}
