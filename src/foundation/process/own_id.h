// take_own_id(): a user and a group that no other process is, for a process of root's that runs code of others.
//
// Threading: none.
#ifndef FOLIOT_FOUNDATION_PROCESS_OWN_ID_H_
#define FOLIOT_FOUNDATION_PROCESS_OWN_ID_H_

#include <sys/types.h>

#include <filesystem>
#include <span>

#include "foundation/base/status.h"

namespace foliot {

// Ids follow from processes' numbers, from here on: beyond what systemd gives users and containers.
inline constexpr uid_t kOwnIdsBegin = 0x70000000;
inline constexpr uid_t kOwnIdsEnd = kOwnIdsBegin + (1u << 22);  // as many as a kernel has processes at most

// The folders then belong to it, but not what is in them. It keeps the privileges that it is permitted, until the next
// program. False: it is not root with the privileges that this and the folders' removal take, or such ids do not
// exist here (a user namespace). Errors: kInternal. `process`: its number, as no other process outside has it.
Result<bool> take_own_id(pid_t process, std::span<const std::filesystem::path> folders);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PROCESS_OWN_ID_H_
