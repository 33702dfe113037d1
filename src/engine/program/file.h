// File: an open file that closes itself, and reading from it.
#ifndef FOLIOT_ENGINE_PROGRAM_FILE_H_
#define FOLIOT_ENGINE_PROGRAM_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace foliot {

// What direct I/O aligns to.
inline constexpr uint64_t kBlockBytes = 4096;
// Read or written by one call: enough to keep a disk's queue full with one thread
// and no call in flight but this one.
inline constexpr uint64_t kChunkBytes = uint64_t{8} << 20;

class File {
 public:
  File() = default;
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~File();
  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

// Zero, or the errno of what went wrong; ENODATA when the file ends early.
int read_fully(const File& file, uint64_t offset, std::span<std::byte> to);

// False, with errno set, if not all could be written. Calls begin at multiples of
// kChunkBytes, but for the first: the kernel then keeps the file in large pieces, which
// are mapped and copied faster than small ones.
bool write_fully(const File& file, uint64_t offset, std::span<const std::byte> from);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_PROGRAM_FILE_H_
