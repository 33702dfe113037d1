// Processors: how many this process may keep busy, and what they are.
#ifndef FOLIOT_FOUNDATION_PLATFORM_PROCESSOR_H_
#define FOLIOT_FOUNDATION_PLATFORM_PROCESSOR_H_

#include <cstdint>
#include <filesystem>
#include <string>

namespace foliot {

// Those it may run on, but no more than its control groups grant it time for
// (rounded up); at least 1. More threads than that would only be throttled.
uint32_t usable_processors();
// As the manufacturer calls it; "unknown" if the system does not say.
std::string processor_name();

// The same, read from `root` instead of "/" (proc and sys below it), for tests.
uint32_t usable_processors(const std::filesystem::path& root);
// How many the control groups grant time for (rounded up), at least 1; kCoresMax: there is
// no limit.
uint32_t granted_processors(const std::filesystem::path& root);
std::string processor_name(const std::filesystem::path& root);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PLATFORM_PROCESSOR_H_
