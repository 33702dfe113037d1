// Confinement: the irrevocable limits that a process puts on itself before it touches
// untrusted data.
//
// What the kernel does not support is left out and reported; resource limits and "no
// new privileges" are always available.
#ifndef FOLIOT_FOUNDATION_PROCESS_CONFINEMENT_H_
#define FOLIOT_FOUNDATION_PROCESS_CONFINEMENT_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/process/kernel_limits.h"

namespace foliot {

struct Confinement {
  // The only files and folders that can be opened from now on, to be read. What
  // is open already stays so.
  std::vector<std::filesystem::path> readable;
  std::vector<std::filesystem::path> controlled{};  // devices: read, written, and their drivers sent requests (ioctl)
  uint64_t memory_bytes = 0;                        // of address space; 0: no limit
  uint64_t file_bytes = 0;                          // of a file that is written; 0: no limit
  Duration cpu_time;                                // of all threads together; zero: no limit
  bool background = false;                          // disk and CPU only where no other process wants them
  KernelLimits kernel{};                            // its Landlock
};

// Confines the calling process, and returns what was not available ("no ...").
// Afterwards: no network, no other program, no signal to another process, no privilege,
// no core dump; first to be killed when the machine is out of memory; ends with the
// thread that started it. Errors: kNotFound if one of `readable` cannot be opened,
// kInternal if a limit that always works does not. REQUIRES: the process has one
// thread.
Result<std::vector<std::string>> confine(const Confinement& confinement);

// Of a process that then executes a program which is not trusted, such as an interpreter
// of user code.
struct ProgramConfinement {
  std::vector<std::filesystem::path> readable;    // files and folders
  std::vector<std::filesystem::path> listed;      // folders, of whose content it may see the names only
  std::vector<std::filesystem::path> executable;  // the program's file, and its dynamic loader's
  std::vector<std::filesystem::path> changeable;  // folders whose files it may read, write, make and remove
  std::vector<std::filesystem::path> devices;  // and other files, or a folder's: those that exist are read and written
  std::vector<std::filesystem::path> controlled;  // devices: read, written, and their drivers sent requests (ioctl)
  uint64_t memory_bytes = 0;                      // of its own data (RLIMIT_DATA); 0: no limit
  uint64_t file_bytes = 0;                        // of a file that is written; 0: no limit
  // Of each of `changeable`, which then is empty, in memory, and its own; 0: it is the folder on disk.
  uint64_t disk_bytes = 0;
  bool network = false;  // IPv4 and IPv6
  // It was started in namespaces of its own (ChildOptions): its processes, mounts and network are its own.
  bool namespaces = false;
  // A user of its own, if this one is root. What is `changeable` then belongs to it.
  bool own_id = false;
  KernelLimits kernel{};
};

// Confines the calling process and the program that it executes, and returns what was
// not available ("no ..."). Afterwards: files only as `confinement` has them, no other
// process, no signal to one, no sockets but pairs (unless `network`; with `controlled`, also ones of
// packets between local processes, which can be listened on but not connected), no memory but the
// program's own and what it was given, no privilege, no core dump; first to be killed when the machine is
// out of memory; ends with the thread that started it. Modes, times and owners of files can be changed only where
// namespaces or an id keep it from those of others. Where there is no Landlock, it writes no
// file at all. The limit is one of data, not of addresses, of which frameworks reserve
// many times what they use. Errors and REQUIRES: as of confine().
Result<std::vector<std::string>> confine_program(const ProgramConfinement& confinement);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PROCESS_CONFINEMENT_H_
