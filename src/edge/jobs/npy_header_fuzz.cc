// libFuzzer target: any bytes, read as the beginning of a .npy file, whose header is then written and read again.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "edge/jobs/npy_header.h"
#include "foundation/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto header = foliot::parse_npy_header(std::as_bytes(std::span(data, size)));
  if (!header.ok()) {
    FOLIOT_CHECK(header.status().code() == foliot::StatusCode::kInvalidArgument && !header.status().message().empty());
    return 0;
  }
  FOLIOT_CHECK(header->data_offset <= size && header->file_bytes() >= header->data_offset);
  const std::string written = foliot::npy_header(header->type, header->shape);
  const auto again = foliot::parse_npy_header(std::as_bytes(std::span(written)));
  FOLIOT_CHECK(again.ok() && again->shape == header->shape && again->type == header->type);
  return 0;
}
