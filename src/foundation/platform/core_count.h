// CoreCount: how many cores some threads of this process may keep busy together: those that the kernel lets them run
// on, but no more than the process's control groups grant it time for (rounded up). Both may change while it serves.
//
// The groups are those of the construction; other threads of the process are not taken off what is granted.
//
// Threading: of() belongs to one thread at a time. It reads files of the kernel, allocates nothing and takes some
// microseconds.
#ifndef FOLIOT_FOUNDATION_PLATFORM_CORE_COUNT_H_
#define FOLIOT_FOUNDATION_PLATFORM_CORE_COUNT_H_

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

namespace foliot {

class CoreCount {
 public:
  // `root` stands for "/" (proc and sys below it).
  explicit CoreCount(const std::filesystem::path& root = "/");

  // At least 1.
  uint32_t of(std::span<const pid_t> threads) const;
  // What the control groups grant, at least 1; kCoresMax: there is no limit.
  uint32_t granted() const;

 private:
  struct Quota;

  std::shared_ptr<const std::vector<Quota>> quotas_;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PLATFORM_CORE_COUNT_H_
