// FileWeights: weights that LOAD reads from the file of their package.
#ifndef FOLIOT_PROGRAM_FILE_WEIGHTS_H_
#define FOLIOT_PROGRAM_FILE_WEIGHTS_H_

#include <memory>
#include <string>

#include "device/device.h"
#include "program/file.h"

namespace foliot {

// Both give an error from read() if the file has shrunk since it was opened.
//
// Where a package's weights lie; `path` is for messages only.
struct WeightsRange {
  std::string path;
  uint64_t offset = 0;  // a multiple of kBlockBytes
  uint64_t bytes = 0;
};

// Held in memory: the kernel's own copy of the file, brought in now, mapped and
// locked, so that opening copies nothing and processes that share a file share it in
// memory. Where the limit forbids locking, the kernel may drop what it needs room for.
// Errors: kInternal if the file cannot be read, kResourceExhausted.
Result<std::shared_ptr<WeightsSource>> weights_in_memory(File file, WeightsRange range);

// Left on disk: every LOAD reads past the kernel's copy with direct I/O, so its
// duration depends on the disk and not on earlier readers; through that copy where the
// file system has no direct I/O.
std::shared_ptr<WeightsSource> weights_on_disk(File file, WeightsRange range);

}  // namespace foliot

#endif  // FOLIOT_PROGRAM_FILE_WEIGHTS_H_
