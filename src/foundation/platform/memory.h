// Available memory, by the machine and by the control group of this process.
#ifndef FOLIOT_FOUNDATION_PLATFORM_MEMORY_H_
#define FOLIOT_FOUNDATION_PLATFORM_MEMORY_H_

#include <cstdint>
#include <filesystem>
#include <optional>

namespace foliot {

uint64_t total_memory_bytes();
// What could be taken now without anything being swapped or killed. nullopt if the
// system does not report it.
std::optional<uint64_t> available_memory_bytes();

// The same, read from `root` instead of "/" (proc and sys below it), for tests.
uint64_t total_memory_bytes(const std::filesystem::path& root);
std::optional<uint64_t> available_memory_bytes(const std::filesystem::path& root);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PLATFORM_MEMORY_H_
