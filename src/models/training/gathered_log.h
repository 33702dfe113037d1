// GatheredLog: a log that is made of copies of users from several front ends, for a trainer: TrainingData reads it as
// it reads that of one server.
//
// Bounded: a batch of copies is in memory.
//
// Threading: none.
#ifndef FOLIOT_MODELS_TRAINING_GATHERED_LOG_H_
#define FOLIOT_MODELS_TRAINING_GATHERED_LOG_H_

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/store/disk_storage.h"
#include "foundation/store/group_commit.h"
#include "foundation/store/log_files.h"

namespace foliot {

class GatheredLog {
 public:
  // Replaces what is in the folder. Errors: as DiskStorage::open().
  static Result<GatheredLog> make(const std::filesystem::path& folder);

  // Of any user, any number of times: they are joined when they are read. Errors: kInvalidArgument if it is no copy;
  // the disk's.
  Status add(std::span<const std::byte> copy);
  // All that was added lasts, as a reader judges it. Nothing is added after it.
  Status finish();

 private:
  GatheredLog(std::unique_ptr<DiskStorage> storage, LogFiles files)
      : storage_(std::move(storage)), files_(std::move(files)) {}
  Status append(std::span<const std::byte> record);
  Status write();

  std::unique_ptr<DiskStorage> storage_;
  LogFiles files_;
  std::unique_ptr<GroupCommit> commit_ = std::make_unique<GroupCommit>(0, GroupCommit::Limits());
  std::vector<std::byte> last_;  // record
};

}  // namespace foliot

#endif  // FOLIOT_MODELS_TRAINING_GATHERED_LOG_H_
