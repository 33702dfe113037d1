// FileWeights: weights that LOAD reads from the file of their package.
#ifndef FOLIOT_ENGINE_PROGRAM_FILE_WEIGHTS_H_
#define FOLIOT_ENGINE_PROGRAM_FILE_WEIGHTS_H_

#include <memory>

#include "engine/device/device.h"
#include "engine/program/package_file.h"

namespace foliot {

// Both give an error from read() if the file is damaged, by then or meanwhile; what was read is not to be used.
//
// Held in memory: the kernel's own copy of the file, brought in now, mapped and
// locked, so that opening copies nothing and processes that share a file share it in
// memory. Where the limit forbids locking, the kernel may drop what it needs room for.
// Errors: kInternal if the file cannot be read, kResourceExhausted.
Result<std::shared_ptr<WeightsSource>> weights_in_memory(std::shared_ptr<PackageFile> file);

// Left on disk: every LOAD reads past the kernel's copy with direct I/O, so its
// duration depends on the disk and not on earlier readers; through that copy where the
// file system has no direct I/O.
std::shared_ptr<WeightsSource> weights_on_disk(std::shared_ptr<PackageFile> file);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_PROGRAM_FILE_WEIGHTS_H_
