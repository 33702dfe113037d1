// Confinement: the irrevocable limits that a process puts on itself before it touches
// untrusted data.
//
// What the kernel does not support is left out and reported; resource limits and "no
// new privileges" are always available.
#ifndef FOLIOT_PROCESS_CONFINEMENT_H_
#define FOLIOT_PROCESS_CONFINEMENT_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"

namespace foliot {

struct Confinement {
  // The only files and folders that can be opened from now on, to be read. What
  // is open already stays so.
  std::vector<std::filesystem::path> readable;
  uint64_t memory_bytes = 0;  // of address space; 0: no limit
  uint64_t file_bytes = 0;    // of a file that is written; 0: no limit
  Duration cpu_time;          // of all threads together; zero: no limit
  bool background = false;    // disk and CPU only where no other process wants them
};

// Confines the calling process, and returns what was not available ("no ...").
// Afterwards: no network, no other program, no signal to another process, no privilege,
// no core dump; first to be killed when the machine is out of memory; ends with the
// thread that started it. Errors: kNotFound if one of `readable` cannot be opened,
// kInternal if a limit that always works does not. REQUIRES: the process has one
// thread.
Result<std::vector<std::string>> confine(const Confinement& confinement);

}  // namespace foliot

#endif  // FOLIOT_PROCESS_CONFINEMENT_H_
