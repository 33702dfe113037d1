// DiskStorage: the files of one folder of a file system, which this process alone writes.
//
// Threading: one at a time.
#ifndef FOLIOT_FOUNDATION_STORE_DISK_STORAGE_H_
#define FOLIOT_FOUNDATION_STORE_DISK_STORAGE_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/platform/descriptor.h"
#include "foundation/store/storage.h"

namespace foliot {

class DiskStorage : public Storage {
 public:
  // Makes the folder if there is none, and locks it until it is destroyed. Errors:
  // kAlreadyExists if another process uses it, kInvalidArgument if it cannot be used.
  static Result<std::unique_ptr<DiskStorage>> open(const std::filesystem::path& folder);

  // To read what another process may be writing: without a lock. Errors: kNotFound.
  static Result<std::unique_ptr<DiskStorage>> open_to_read(const std::filesystem::path& folder);

  Result<std::unique_ptr<StorageFile>> create(std::string_view name) override;
  Result<std::vector<std::byte>> read(std::string_view name) override;
  Result<std::vector<std::byte>> read(std::string_view name, uint64_t offset, size_t bytes_max) override;
  Status sync(std::string_view name) override;
  Status rename(std::string_view from, std::string_view to) override;
  Status remove(std::string_view name) override;
  Result<std::vector<std::string>> list() override;

 private:
  DiskStorage(std::filesystem::path folder, Descriptor descriptor, Descriptor lock)
      : folder_(std::move(folder)), descriptor_(std::move(descriptor)), lock_(std::move(lock)) {}
  std::string path(std::string_view name) const { return (folder_ / name).string(); }
  Status sync_folder();

  std::filesystem::path folder_;
  Descriptor descriptor_;  // of the folder
  Descriptor lock_;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_STORE_DISK_STORAGE_H_
