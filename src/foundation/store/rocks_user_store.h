// RocksUserStore: a UserStore over RocksDB, in a folder of its own.
//
// Without RocksDB's own log: the owner can rebuild what a crash lost. Memory is bounded: blocks, filters and what is
// not written to a file yet have `bytes_max` together. Values have checksums: a damaged one is an error, never another
// value.
//
// RocksDB has two threads for the whole process (flush, compaction), which have the lowest priority.
//
// Threading: as UserStore.
#ifndef FOLIOT_FOUNDATION_STORE_ROCKS_USER_STORE_H_
#define FOLIOT_FOUNDATION_STORE_ROCKS_USER_STORE_H_

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "foundation/store/user_store.h"

namespace foliot {

class RocksUserStore : public UserStore {
 public:
  static constexpr uint64_t kBytesMin = 4 << 20;

  // Makes the folder if there is none, as the owner of its parent: no other process opens it. Errors: kInvalidArgument
  // for `bytes_max` below kBytesMin; as UserStore, also if what is in it is damaged: then remove_all() and open again.
  static Result<std::unique_ptr<RocksUserStore>> open(const std::filesystem::path& folder, uint64_t bytes_max);
  // Removes a folder that is not open; without effect if there is none.
  static Status remove_all(const std::filesystem::path& folder);
  ~RocksUserStore() override;

  Result<std::optional<Bytes>> get(uint64_t user) override;
  Status write(std::span<const Write> writes) override;
  Result<std::vector<Value>> scan(std::optional<uint64_t> after, size_t bytes_max) override;
  Status flush() override;
  Status purge(std::span<const uint64_t> users) override;
  Status clear() override;
  Result<std::optional<Bytes>> note() override;
  Status set_note(std::optional<Bytes> note) override;

 private:
  struct Database;  // RocksDB's
  explicit RocksUserStore(std::unique_ptr<Database> database);
  std::unique_ptr<Database> database_;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_STORE_ROCKS_USER_STORE_H_
