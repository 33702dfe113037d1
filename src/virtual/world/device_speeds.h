// Device speeds: the measured speed of a real device, for NoiseOptions::exec_speeds.
#ifndef FOLIOT_VIRTUAL_WORLD_DEVICE_SPEEDS_H_
#define FOLIOT_VIRTUAL_WORLD_DEVICE_SPEEDS_H_

#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/status.h"
#include "virtual/world/simulated_device.h"

namespace foliot {

// One "SECONDS SPEED" per line, seconds ascending; empty lines and those that begin
// with # do not count. Errors: kInvalidArgument naming the line.
Result<std::vector<DeviceSpeed>> parse_device_speeds(std::string_view text);

// The same from a file. Errors name it; also kNotFound.
Result<std::vector<DeviceSpeed>> read_device_speeds(const std::string& path);

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_WORLD_DEVICE_SPEEDS_H_
