// Whatever a package holds, opening it gives a program and its weights, or an error.
//
// An input begins with a byte that says what the rest is: 0, a whole file; else the
// metadata of a file that is otherwise as it should be, with as many blocks of
// weights as that byte less one.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "engine/program/file.h"
#include "engine/program/metadata.h"
#include "engine/program/package.h"
#include "foundation/base/hash.h"

namespace foliot {
namespace {

using Bytes = std::span<const std::byte>;

// As package.cc lays it out.
std::vector<std::byte> file_around(Bytes metadata, uint64_t weights_bytes) {
  const std::vector<std::byte> weights(weights_bytes);
  StreamHash weights_hash;
  weights_hash.update(weights);
  const uint64_t weights_offset = (kBlockBytes + metadata.size() + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  std::vector<uint64_t> header{0,  // magic, copied below
                               2,  // version
                               metadata.size(),
                               hash64(metadata),
                               weights_offset,
                               weights_bytes,
                               weights_hash.digest64()};
  std::memcpy(header.data(), "FoliotP\n", sizeof(uint64_t));
  header.push_back(hash64(std::as_bytes(std::span(header))));
  std::vector<std::byte> file(weights_offset + weights_bytes);
  std::memcpy(file.data(), header.data(), header.size() * sizeof(uint64_t));
  std::memcpy(file.data() + kBlockBytes, metadata.data(), metadata.size());
  return file;
}

void open_whole(Bytes bytes) {
  const File file(::memfd_create("package", MFD_CLOEXEC));
  FOLIOT_CHECK(file.is_open() && write_fully(file, 0, bytes));
  const std::string path = "/proc/self/fd/" + std::to_string(file.descriptor());
  for (const WeightsTier tier : {WeightsTier::kMemory, WeightsTier::kDisk}) {
    const auto package = open_package(path, tier);
    if (!package.ok()) continue;
    std::vector<std::byte> weights(package->weights->bytes());
    FOLIOT_CHECK(package->weights->read(0, weights).ok());
    const std::string again = encode_metadata(*package->program);
    FOLIOT_CHECK(decode_metadata(std::as_bytes(std::span(again))).ok());
  }
}

}  // namespace
}  // namespace foliot

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto rest = std::as_bytes(std::span(data, size).subspan(1));
  if (data[0] == 0) {
    foliot::open_whole(rest);
  } else {
    foliot::open_whole(foliot::file_around(rest, (data[0] - 1) * foliot::kBlockBytes));
  }
  return 0;
}
