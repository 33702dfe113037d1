// SimulatedStorage: files in memory. Without faults it is the fake of Storage; with them, a disk
// on which everything goes wrong, by a seed.
//
// An operation takes a drawn time, so that its owner knows what arrives meanwhile. A crash comes
// within an operation: it takes effect in part, and it and all later ones fail, until restart().
// What was not synced is then lost in part: any prefix of it stays, and blocks of that may be
// zero or of an earlier file. After a sync() that failed, what it was to write counts as never synced,
// and later syncs return without an error, as those of Linux do.
//
// Threading: one at a time.
#ifndef FOLIOT_FOUNDATION_STORE_SIMULATED_STORAGE_H_
#define FOLIOT_FOUNDATION_STORE_SIMULATED_STORAGE_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "foundation/base/random.h"
#include "foundation/base/time.h"
#include "foundation/store/storage.h"

namespace foliot {

class SimulatedStorage : public Storage {
 public:
  struct Faults {
    double crash = 0;          // probability, for each operation that changes something
    double failed_append = 0;  // a part is written
    double failed_sync = 0;    // what was not synced may be lost
    double failed_name = 0;    // create, rename, remove; nothing is done
    double disk_full = 0;      // for an append: it fails, and so do the next few
    Duration operation_max{};  // each takes up to this
  };

  SimulatedStorage(uint64_t seed, const Faults& faults) : random_(seed), faults_(faults) {}
  SimulatedStorage() : SimulatedStorage(0, Faults{}) {}

  Result<std::unique_ptr<StorageFile>> create(std::string_view name) override;
  Result<std::vector<std::byte>> read(std::string_view name) override;
  Result<std::vector<std::byte>> read(std::string_view name, uint64_t offset, size_t bytes_max) override;
  Status sync(std::string_view name) override;
  Status rename(std::string_view from, std::string_view to) override;
  Status remove(std::string_view name) override;
  Result<std::vector<std::string>> list() override;

  bool crashed() const { return crashed_; }
  // The machine goes down now, and what was not synced is lost in part. All files that are open
  // become useless.
  void crash();
  // The process ends and nothing is lost. Any thread may call it, also beside operations.
  void end_process() { crashed_ = true; }
  void restart() { crashed_ = false; }
  void set_faults(const Faults& faults) {
    faults_ = faults;
    appends_until_space_ = 0;
  }
  // How long all operations took so far.
  Duration elapsed() const { return elapsed_; }

  // Flips one bit of a file. REQUIRES: it has this byte.
  void flip(std::string_view name, uint64_t byte, uint32_t bit);
  void truncate(std::string_view name, uint64_t bytes);
  uint64_t syncs() const { return syncs_; }

 private:
  class OpenFile;
  struct File {
    std::vector<std::byte> bytes;
    uint64_t synced_bytes = 0;
    bool is_broken = false;  // a sync failed: nothing after `synced_bytes` is ever synced
  };
  bool drawn(double probability) { return probability > 0 && random_.uniform() < probability; }
  // An operation begins: false if it is the one in which the machine crashes.
  bool begin();
  Status append(const std::shared_ptr<File>& file, const std::string& name, std::span<const std::byte> bytes);
  Status sync(const std::shared_ptr<File>& file, const std::string& name);
  void lose_part(File& file);

  Random random_;
  Faults faults_;
  Duration elapsed_;
  std::atomic<bool> crashed_ = false;
  uint64_t appends_until_space_ = 0;
  uint64_t syncs_ = 0;
  std::map<std::string, std::shared_ptr<File>, std::less<>> files_;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_STORE_SIMULATED_STORAGE_H_
