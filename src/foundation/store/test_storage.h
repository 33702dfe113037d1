// SharedStorage: for tests, a storage that outlives the log that owns this, so that another log finds what is on it.
//
// Threading: as that storage.
#ifndef FOLIOT_FOUNDATION_STORE_TEST_STORAGE_H_
#define FOLIOT_FOUNDATION_STORE_TEST_STORAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/store/storage.h"

namespace foliot {

class SharedStorage : public Storage {
 public:
  explicit SharedStorage(Storage& storage) : storage_(storage) {}
  Result<std::unique_ptr<StorageFile>> create(std::string_view name) override { return storage_.create(name); }
  Result<std::vector<std::byte>> read(std::string_view name) override { return storage_.read(name); }
  Result<std::vector<std::byte>> read(std::string_view name, uint64_t offset, size_t bytes_max) override {
    return storage_.read(name, offset, bytes_max);
  }
  Status sync(std::string_view name) override { return storage_.sync(name); }
  Status rename(std::string_view from, std::string_view to) override { return storage_.rename(from, to); }
  Status remove(std::string_view name) override { return storage_.remove(name); }
  Result<std::vector<std::string>> list() override { return storage_.list(); }

 private:
  Storage& storage_;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_STORE_TEST_STORAGE_H_
