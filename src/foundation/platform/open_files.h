// Files and connections that this process has open: how many they may be, and room for them.
#ifndef FOLIOT_FOUNDATION_PLATFORM_OPEN_FILES_H_
#define FOLIOT_FOUNDATION_PLATFORM_OPEN_FILES_H_

#include <cstdint>

namespace foliot {

// Raises it as far as an unprivileged process may; shells set it lower by default.
// Returns the new limit.
uint64_t raise_open_files_limit();

// Has the kernel make room for so many, 65,536 at most (512 KiB), as long as the process lives. Otherwise it makes room
// when a thread opens one more, twice as much each time, and where there are several threads this one is blocked until
// all processors have passed a grace period of RCU: 14 ms were seen beside clients that open connections. To be called
// while there is one thread, with no more than the limit.
void reserve_open_files(uint64_t count);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PLATFORM_OPEN_FILES_H_
