// Control groups of this process, whose files limit what it may use of the machine.
#ifndef FOLIOT_FOUNDATION_PLATFORM_CONTROL_GROUP_H_
#define FOLIOT_FOUNDATION_PLATFORM_CONTROL_GROUP_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace foliot {

struct ControlGroup {
  std::filesystem::path folder;
  uint32_t version = 2;  // 1 or 2: they name their files differently
};

// Where the limits of `controller` ("memory", "cpu") are, each group before the one
// that it lies in; of both versions where both are in use. Folders may lack any
// file. `root` stands for "/" (proc and sys below it).
std::vector<ControlGroup> control_groups(const std::filesystem::path& root, std::string_view controller);

// A file that begins with a number; nullopt if there is none ("max").
std::optional<int64_t> number_in(const std::filesystem::path& file);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PLATFORM_CONTROL_GROUP_H_
