// Whatever the metadata of a package holds, decoding gives a program or an error.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "program/metadata.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto program = foliot::decode_metadata(std::as_bytes(std::span(data, size)));
  if (!program.ok()) return 0;
  const std::string again = foliot::encode_metadata(*program);
  FOLIOT_CHECK(foliot::decode_metadata(std::as_bytes(std::span(again))).ok());
  return 0;
}
