// Landlock: which files this process, and what it becomes, can reach.
//
// Files that are open already stay so. docs of the kernel: userspace-api/landlock.
//
// Threading: none.
#ifndef FOLIOT_FOUNDATION_PROCESS_LANDLOCK_H_
#define FOLIOT_FOUNDATION_PROCESS_LANDLOCK_H_

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <utility>

#include "foundation/base/status.h"
#include "foundation/platform/descriptor.h"

namespace foliot {

class Landlock {
 public:
  enum class Access {
    kRead,       // a file, or all files of a folder
    kList,       // the names in a folder and in those below
    kExecute,    // and read it
    kChange,     // read, write, make and remove files and folders below a folder
    kReadWrite,  // a file that exists, a device, or all of a folder
    kControl,    // a device: read, write, and requests to its driver (ioctl)
  };

  // Nothing can be reached, until allow(). `network`: TCP stays as it is. `version_max`: as on a kernel with
  // this version of the interface. nullopt: this kernel has no Landlock.
  static std::optional<Landlock> create(bool network = false, int version_max = std::numeric_limits<int>::max());

  // Of the interface, from 1 on.
  int version() const { return version_; }
  // Errors: kNotFound if it cannot be opened, kInternal. A file below /proc stays open, also in the program that is
  // executed: the kernel forgets files of /proc that are not open, and with them what is allowed.
  Status allow(const std::filesystem::path& path, Access access);
  // Irrevocably, for the calling thread and its children. False: the kernel refused. REQUIRES: no
  // new privileges.
  bool enforce();

 private:
  Landlock(Descriptor ruleset, int version, uint64_t files)
      : ruleset_(std::move(ruleset)), version_(version), files_(files) {}

  Descriptor ruleset_;
  int version_;
  uint64_t files_;  // what this kernel can forbid
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PROCESS_LANDLOCK_H_
