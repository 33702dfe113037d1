// How many files and connections this process may have open.
#ifndef FOLIOT_PLATFORM_OPEN_FILES_H_
#define FOLIOT_PLATFORM_OPEN_FILES_H_

#include <cstdint>

namespace foliot {

// As many as it may have without asking anybody; shells give less by themselves.
// Returns how many.
uint64_t raise_open_files_limit();

}  // namespace foliot

#endif  // FOLIOT_PLATFORM_OPEN_FILES_H_
