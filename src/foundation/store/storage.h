// Storage: the port through which the log uses files; all of them stand in one folder.
//
// DiskStorage is a folder of a file system; SimulatedStorage keeps everything in memory and
// injects faults.
//
// Durability: create(), rename() and remove() last once they have returned. What was appended
// lasts once sync() of its file has returned without an error. After an error of append() or sync()
// any part of what was appended since the last good sync() may be in the file, now or after a
// crash: a caller must not append to that file again, since a system that could not write pages
// marks them as written.
//
// Errors name the file: kResourceExhausted if the disk is full, kNotFound if there is no such
// file, else kInternal.
//
// Threading: one at a time. All functions block.
#ifndef FOLIOT_FOUNDATION_STORE_STORAGE_H_
#define FOLIOT_FOUNDATION_STORE_STORAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/status.h"

namespace foliot {

// A file that is being written. Closed when it is destroyed, without a sync().
class StorageFile {
 public:
  virtual ~StorageFile() = default;
  virtual Status append(std::span<const std::byte> bytes) = 0;
  virtual Status sync() = 0;
};

class Storage {
 public:
  virtual ~Storage() = default;
  // Begins the file anew if there is one.
  virtual Result<std::unique_ptr<StorageFile>> create(std::string_view name) = 0;
  virtual Result<std::vector<std::byte>> read(std::string_view name) = 0;
  // Of the file, from `offset` on, `bytes_max` bytes or what there is.
  virtual Result<std::vector<std::byte>> read(std::string_view name, uint64_t offset, size_t bytes_max) = 0;
  // What is in a file that an earlier process wrote lasts from here on.
  virtual Status sync(std::string_view name) = 0;
  // Replaces the file `to`, whole.
  virtual Status rename(std::string_view from, std::string_view to) = 0;
  virtual Status remove(std::string_view name) = 0;
  // All files, sorted.
  virtual Result<std::vector<std::string>> list() = 0;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_STORE_STORAGE_H_
