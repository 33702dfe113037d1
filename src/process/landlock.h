// Landlock: which files this process, and what it becomes, can reach.
//
// Files that are open already stay so. docs of the kernel: userspace-api/landlock.
//
// Threading: none.
#ifndef FOLIOT_PROCESS_LANDLOCK_H_
#define FOLIOT_PROCESS_LANDLOCK_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/status.h"
#include "platform/descriptor.h"

namespace foliot {

class Landlock {
 public:
  enum class Access {
    kRead,       // a file, or all files of a folder
    kExecute,    // and read it
    kChange,     // read, write, make and remove files and folders below a folder
    kReadWrite,  // a file that exists, a device, or all of a folder
    kControl,    // a device: read, write, and requests to its driver (ioctl)
  };

  // Nothing can be reached, until allow(). `network`: TCP stays as it is. nullopt: this kernel
  // has no Landlock.
  static std::optional<Landlock> create(bool network = false);

  // Errors: kNotFound if it cannot be opened, kInternal.
  Status allow(const std::filesystem::path& path, Access access);
  // Irrevocably, for the calling thread and its children. False: the kernel refused. REQUIRES: no
  // new privileges.
  bool enforce();

 private:
  Landlock(Descriptor ruleset, uint64_t files) : ruleset_(std::move(ruleset)), files_(files) {}

  Descriptor ruleset_;
  uint64_t files_;  // what this kernel can forbid
};

}  // namespace foliot

#endif  // FOLIOT_PROCESS_LANDLOCK_H_
