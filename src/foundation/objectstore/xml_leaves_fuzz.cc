// libFuzzer target: any text, read as an answer of an object store.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "foundation/base/check.h"
#include "foundation/objectstore/object_listing.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto listing = foliot::ObjectListing::parse(text);
  FOLIOT_CHECK(listing.ok() || !listing.status().message().empty());
  static_cast<void>(foliot::StoreError::parse(text));
  return 0;
}
