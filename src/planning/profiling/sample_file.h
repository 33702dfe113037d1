// SampleFile: the samples of operator groups that were measured, kept so that profiling which is
// interrupted goes on where it was.
//
// A file has a header, which says of what setting its samples are, and the samples, each with a
// hash. It is written anew beside the old one, which is replaced once it has as many; so whenever
// the process or the machine stops, one of the two has all that was synced. What is torn or
// damaged ends a file.
//
// Threading: one thread; all functions block.
#ifndef FOLIOT_PLANNING_PROFILING_SAMPLE_FILE_H_
#define FOLIOT_PLANNING_PROFILING_SAMPLE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/store/storage.h"
#include "planning/profiling/overlap_sample.h"

namespace foliot {

inline constexpr std::string_view kSampleFileName = "samples", kNewSampleFileName = "samples.new";
// As many as all pairs of the models of a predictor have at most.
inline constexpr uint32_t kSamplesMax = 1 << 20;

class SampleFile {
 public:
  // Reads what there is of this setting, any text that says all that durations depend on; samples of
  // another are left out, and lost with the first sync. Storage outlives it. Errors: the storage's.
  static Result<SampleFile> open(Storage& storage, const std::string& setting);

  const std::vector<OverlapSample>& samples() const { return samples_; }
  // Of an earlier process.
  size_t found() const { return found_; }
  // Errors: the storage's, of which kResourceExhausted is a full disk; then nothing of what was
  // synced is lost, and the file takes no more.
  Status add(OverlapSample sample);
  // What was added is there after a crash.
  Status sync();

  // What a file of these bytes holds; none if it is of another setting.
  static std::vector<OverlapSample> decode(std::span<const std::byte> bytes, const std::string& setting);
  static std::vector<std::byte> encode_header(const std::string& setting);
  static std::vector<std::byte> encode(const OverlapSample& sample);

 private:
  explicit SampleFile(Storage& storage) : storage_(&storage) {}
  Status begin(const std::string& setting);

  Storage* storage_;
  std::vector<OverlapSample> samples_;
  size_t found_ = 0;
  std::unique_ptr<StorageFile> file_;
};

}  // namespace foliot

#endif  // FOLIOT_PLANNING_PROFILING_SAMPLE_FILE_H_
