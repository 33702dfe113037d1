// SystemCallFilter: the system calls that this process, and what it becomes, can make
// (seccomp).
//
// Threading: none.
#ifndef FOLIOT_FOUNDATION_PROCESS_SYSTEM_CALL_FILTER_H_
#define FOLIOT_FOUNDATION_PROCESS_SYSTEM_CALL_FILTER_H_

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace foliot {

class SystemCallFilter {
 public:
  // Of one argument of a call: it has this value where the mask has ones.
  struct Condition {
    unsigned argument = 0;
    uint64_t mask = 0;
    uint64_t value = 0;
  };
  // Of an int, of which the kernel takes the lower half of a register.
  static Condition equals(unsigned argument, uint32_t value) { return {argument, 0xffffffff, value}; }
  static Condition has_none_of(unsigned argument, uint64_t bits) { return {argument, bits, 0}; }

  // Every call fails with EPERM, until allow().
  SystemCallFilter();

  // If all conditions hold. Names of other architectures are left out.
  void allow(const char* name, std::initializer_list<Condition> conditions = {});
  void allow(std::span<const char* const> names);
  // It fails with this error.
  void refuse(const char* name, int error, std::initializer_list<Condition> conditions = {});

  // Irrevocably. Returns why there is no filter, if so. REQUIRES: no new privileges.
  std::optional<std::string> load();

 private:
  void add(uint32_t action, const char* name, std::initializer_list<Condition> conditions);

  std::unique_ptr<void, void (*)(void*)> filter_;
  int error_ = 0;
};

// Memory, threads, time, and files that are open: what any computation makes.
std::span<const char* const> computing_system_calls();
// Threads, but no processes, and no namespaces.
void allow_threads(SystemCallFilter& filter);
// Copies, flags and locks of descriptors: no signals of them, which the kernel would send to any process of this user
// (F_SETOWN), and no leases, which delay what others open.
void allow_descriptor_control(SystemCallFilter& filter);
// Signals to itself (abort), names of threads, its own limits, and the instructions that the processor
// grants on request.
void allow_self_control(SystemCallFilter& filter);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PROCESS_SYSTEM_CALL_FILTER_H_
