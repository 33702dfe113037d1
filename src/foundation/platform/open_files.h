// The limit on files and connections that this process may have open.
#ifndef FOLIOT_FOUNDATION_PLATFORM_OPEN_FILES_H_
#define FOLIOT_FOUNDATION_PLATFORM_OPEN_FILES_H_

#include <cstdint>

namespace foliot {

// Raises it as far as an unprivileged process may; shells set it lower by default.
// Returns the new limit.
uint64_t raise_open_files_limit();

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PLATFORM_OPEN_FILES_H_
