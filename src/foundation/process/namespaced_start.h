// namespaced_start(): a program in namespaces of its own: it is process 1 among its processes, has its own mounts and
// System V objects, and without `network` its own, empty network.
//
// A process that may not make namespaces makes them in a user namespace of its own, in which the program has the
// same user and all privileges, and outside of it none. The program keeps CAP_SYS_ADMIN, for its mounts, until it drops
// it. Process 1 gets no signal from within for which it has no handler: abort() ends it by SIGSEGV, after the kernel
// ignored SIGABRT.
//
// Threading: any thread. The calling one is suspended until the program runs, as for vfork().
#ifndef FOLIOT_FOUNDATION_PROCESS_NAMESPACED_START_H_
#define FOLIOT_FOUNDATION_PROCESS_NAMESPACED_START_H_

#include <sys/types.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace foliot {

struct NamespacedProgram {
  const std::vector<std::string>& command;      // the program's path and its arguments
  const std::vector<std::string>& environment;  // NAME=VALUE
  std::array<int, 4> files{};                   // become its descriptors 0 to 3, of which the last may be -1: none
  bool network = false;
};

// The process, in a process group of its own, without blocked signals and other descriptors. nullopt: namespaces are
// refused here, or the program cannot be run.
std::optional<pid_t> namespaced_start(const NamespacedProgram& program);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PROCESS_NAMESPACED_START_H_
