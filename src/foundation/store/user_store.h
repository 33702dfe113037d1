// UserStore: the port through which bytes of users that are not in memory are kept: a value for each 64-bit number.
//
// RocksUserStore is a folder of a file system; SimulatedUserStore keeps everything in memory, and loses and fails by a
// seed. One suite runs on both (user_store_test.cc).
//
// Durability: what was written lasts from the next flush() on that returned without an error. A crash before it loses
// the last writes: what is left is the state after some write, and each write is there whole or not at all.
//
// Errors, which name the folder and what to do: kResourceExhausted if the disk is full, else kInternal. After an error
// of write() nothing of it is there, and the same may be written again.
//
// Threading: get() and scan() by any thread; the rest one at a time, beside these. All functions block.
#ifndef FOLIOT_FOUNDATION_STORE_USER_STORE_H_
#define FOLIOT_FOUNDATION_STORE_USER_STORE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "foundation/base/status.h"

namespace foliot {

class UserStore {
 public:
  using Bytes = std::vector<std::byte>;
  struct Value {
    uint64_t user = 0;
    Bytes bytes{};
  };
  struct Write {
    uint64_t user = 0;
    std::optional<Bytes> bytes{};  // nullopt: the value is erased
  };

  virtual ~UserStore() = default;
  // nullopt: the user has none.
  virtual Result<std::optional<Bytes>> get(uint64_t user) = 0;
  // In their order, all or none.
  virtual Status write(std::span<const Write> writes) = 0;
  // Values of the users above `after` (nullopt: of all), in the order of their numbers: as many as have `bytes_max`
  // bytes together, but one at least; empty: there are no more.
  virtual Result<std::vector<Value>> scan(std::optional<uint64_t> after, size_t bytes_max) = 0;
  virtual Status flush() = 0;
  // Values that were erased, or replaced, of these users are in no file any more.
  virtual Status purge(std::span<const uint64_t> users) = 0;
  // Everything is gone, from the files too.
  virtual Status clear() = 0;

  // What the owner notes of the whole: as a value that scan() leaves out and clear() removes.
  virtual Result<std::optional<Bytes>> note() = 0;
  // nullopt: erased. In the order of all writes.
  virtual Status set_note(std::optional<Bytes> note) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_STORE_USER_STORE_H_
