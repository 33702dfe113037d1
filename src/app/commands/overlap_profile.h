// `foliot profile --overlap`: measures how long models of a repository take beside each other, and
// makes the predictor of operator groups (planning/profiling/predictor_file.h).
#ifndef FOLIOT_APP_COMMANDS_OVERLAP_PROFILE_H_
#define FOLIOT_APP_COMMANDS_OVERLAP_PROFILE_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "app/commands/part_flags.h"
#include "foundation/base/status.h"

namespace foliot {

struct OverlapProfileFlags {
  std::filesystem::path repository;
  std::filesystem::path cache;      // empty: <repository>/.foliot
  std::vector<std::string> models;  // names or patterns
  DeviceFlags devices;
  uint32_t samples = 2000;
  uint32_t repeats = 5;
  uint64_t seed = 1;
  double error_max = 0.15;  // of the held-out error and of the spread of repeats; above it no predictor is kept
  std::filesystem::path report_json;  // empty: none is written
};

// All but repository, cache and --threads. Returns --overlap, without which the others are not taken.
CLI::Option* add_overlap_profile_flags(CLI::App& app, OverlapProfileFlags& flags);
// Prints what it found. Errors say how to go on.
Status profile_overlap(const OverlapProfileFlags& flags);

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_OVERLAP_PROFILE_H_
