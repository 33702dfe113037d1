// Changes of what a process in a mount namespace of its own sees of the machine's files.
//
// Each returns why it is not so, if it is not: "no ...". What is open already stays as it is.
// REQUIRES: a mount namespace of its own (namespaced_start.h); one thread.
#ifndef FOLIOT_FOUNDATION_PROCESS_OWN_MOUNTS_H_
#define FOLIOT_FOUNDATION_PROCESS_OWN_MOUNTS_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

namespace foliot {

// What is mounted from now on, here or by others, is mounted on one side only. Comes before the others.
std::optional<std::string> keep_mounts_apart();

// Nothing on any file system can be changed, neither its content nor its mode, times and owner, but below `writable`,
// which are folders.
std::optional<std::string> mount_all_read_only(std::span<const std::filesystem::path> writable);

// The folder is a new, empty file system in memory, of at most so many bytes, which goes with the namespace.
std::optional<std::string> mount_memory(const std::filesystem::path& folder, uint64_t bytes);

// /proc has the processes of this PID namespace, and can only be read, unless `writable`.
std::optional<std::string> mount_own_processes(bool writable);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PROCESS_OWN_MOUNTS_H_
