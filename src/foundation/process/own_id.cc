#include "foundation/process/own_id.h"

#include <fmt/format.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "foundation/base/error_text.h"

namespace foliot {
namespace {

// Of which the server has the same: it ends the process, and removes its files.
constexpr uint32_t kNeeded =
    1u << CAP_CHOWN | 1u << CAP_DAC_OVERRIDE | 1u << CAP_KILL | 1u << CAP_SETGID | 1u << CAP_SETUID;

bool is_privileged() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, 2> sets{};
  return ::geteuid() == 0 && ::syscall(SYS_capget, &header, sets.data()) == 0 &&
         (sets[0].effective & kNeeded) == kNeeded;
}

}  // namespace

Result<bool> take_own_id(pid_t process, std::span<const std::filesystem::path> folders) {
  const uid_t id = kOwnIdsBegin + static_cast<uid_t>(process);
  if (!is_privileged() || process <= 0 || id >= kOwnIdsEnd) return false;
  for (const std::filesystem::path& folder : folders) {
    if (::lchown(folder.c_str(), id, id) != 0) return false;
  }
  if (::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0 && ::setgroups(0, nullptr) == 0 && ::setresgid(id, id, id) == 0 &&
      ::setresuid(id, id, id) == 0) {
    return true;
  }
  return Status::internal(fmt::format("cannot become user {}: {}", id, error_text(errno)));
}

}  // namespace foliot
