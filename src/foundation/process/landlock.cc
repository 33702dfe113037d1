#include "foundation/process/landlock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "foundation/base/error_text.h"

namespace foliot {
namespace {

// The rights of all versions of the interface, so that any kernel headers do.

struct LandlockRules {
  uint64_t files;
  uint64_t network;  // from version 4 on
  uint64_t scopes;   // from version 6 on
};

struct [[gnu::packed]] LandlockPath {
  uint64_t allowed;
  int32_t parent;
};

constexpr uint64_t kExecute = 1 << 0, kWriteFile = 1 << 1, kReadFile = 1 << 2, kReadFolder = 1 << 3;
constexpr uint64_t kRemove = 3 << 4, kMakeFolder = 1 << 7, kMakeFile = 1 << 8, kMakeLink = 1 << 12;
constexpr uint64_t kMove = 1 << 13, kTruncate = 1 << 14, kControlDevice = 1 << 15;
constexpr uint64_t kOfFolders = kReadFolder | kRemove | kMakeFolder | kMakeFile | kMakeLink | kMove;

// What each version can forbid.
LandlockRules rules_of(int version) {
  LandlockRules rules{};
  rules.files = (1 << 13) - 1;
  if (version >= 2) rules.files |= kMove;  // moving files between folders
  if (version >= 3) rules.files |= kTruncate;
  if (version >= 4) rules.network = 3;  // TCP: bind and connect
  if (version >= 5) rules.files |= kControlDevice;
  if (version >= 6) rules.scopes = 3;  // abstract sockets and signals of others
  return rules;
}

size_t rules_bytes(int version) { return version >= 6 ? 24 : version >= 4 ? 16 : 8; }

uint64_t rights_of(Landlock::Access access) {
  switch (access) {
    case Landlock::Access::kRead: return kReadFile | kReadFolder;
    case Landlock::Access::kList: return kReadFolder;
    case Landlock::Access::kExecute: return kReadFile | kExecute;
    case Landlock::Access::kChange: return kReadFile | kWriteFile | kTruncate | kOfFolders;
    case Landlock::Access::kReadWrite: return kReadFile | kWriteFile | kTruncate;
    case Landlock::Access::kControl: return kReadFile | kWriteFile | kControlDevice;
  }
  return 0;
}

}  // namespace

std::optional<Landlock> Landlock::create(bool network, int version_max) {
  constexpr unsigned kAskVersion = 1;
  const auto offered = static_cast<int>(::syscall(SYS_landlock_create_ruleset, nullptr, 0, kAskVersion));
  const int version = std::min(offered, version_max);
  if (version < 1) return std::nullopt;
  LandlockRules rules = rules_of(version);
  if (network) rules.network = 0;
  Descriptor ruleset(static_cast<int>(::syscall(SYS_landlock_create_ruleset, &rules, rules_bytes(version), 0)));
  if (!ruleset.is_open()) return std::nullopt;
  return Landlock(std::move(ruleset), version, rules.files);
}

Status Landlock::allow(const std::filesystem::path& path, Access access) {
  constexpr int kPathBeneath = 1;
  const bool of_processes = path.native().starts_with("/proc/");
  Descriptor opened(::open(path.c_str(), of_processes ? O_PATH : O_PATH | O_CLOEXEC));
  struct stat status {};
  if (!opened.is_open() || ::fstat(opened.number(), &status) != 0) {
    return Status::not_found(fmt::format("cannot open {}: {}", path.string(), error_text(errno)));
  }
  uint64_t rights = rights_of(access) & files_;
  if (!S_ISDIR(status.st_mode)) rights &= ~kOfFolders;
  const LandlockPath rule{.allowed = rights, .parent = opened.number()};
  const bool added = ::syscall(SYS_landlock_add_rule, ruleset_.number(), kPathBeneath, &rule, 0) == 0;
  if (added && of_processes) opened.release();
  if (added) return {};
  return Status::internal(fmt::format("cannot limit access to {}: {}", path.string(), error_text(errno)));
}

bool Landlock::enforce() { return ::syscall(SYS_landlock_restrict_self, ruleset_.number(), 0) == 0; }

}  // namespace foliot
