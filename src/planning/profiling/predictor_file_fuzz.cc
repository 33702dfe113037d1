// Whatever the files of profiling hold, reading them gives a predictor or samples, or an error, and
// what was read is written and read again as the same.
//
// An input begins with a byte: 0, a file of samples behind its header; else a predictor's file, of
// which the hash is put right, so that what it guards is read.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "foundation/base/check.h"
#include "foundation/base/hash.h"
#include "planning/profiling/predictor_file.h"
#include "planning/profiling/sample_file.h"

namespace foliot {
namespace {

constexpr size_t kHashAt = 12, kBodyAt = 20;

void read_samples(std::span<const std::byte> bytes) {
  std::vector<std::byte> file = SampleFile::encode_header("fuzz");
  file.insert(file.end(), bytes.begin(), bytes.end());
  std::vector<std::byte> again = SampleFile::encode_header("fuzz");
  for (const OverlapSample& sample : SampleFile::decode(file, "fuzz")) {
    const std::vector<std::byte> one = SampleFile::encode(sample);
    again.insert(again.end(), one.begin(), one.end());
  }
  FOLIOT_CHECK(again.size() <= file.size() && std::equal(again.begin(), again.end(), file.begin()));
}

void read_predictor_file(std::span<const std::byte> bytes) {
  std::vector<std::byte> file(bytes.begin(), bytes.end());
  if (file.size() >= kBodyAt) {
    const uint64_t hash = hash64(std::span(file).subspan(kBodyAt));
    std::memcpy(&file[kHashAt], &hash, sizeof(hash));
  }
  const Result<OverlapPredictor> predictor = decode_predictor(file);
  if (!predictor.ok()) return;
  FOLIOT_CHECK(decode_predictor(encode_predictor(*predictor)).ok());
  const std::vector<OverlapPredictor::Part> group{{0, 0, {}}, {1, 0, {0, 1}}};
  if (predictor->models().size() > 1 && predictor->lane_count() > 1) (void)predictor->predict(group);
}

}  // namespace
}  // namespace foliot

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::span<const std::byte> rest = std::as_bytes(std::span(data, size)).subspan(1);
  data[0] == 0 ? foliot::read_samples(rest) : foliot::read_predictor_file(rest);
  return 0;
}
