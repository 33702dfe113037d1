// Session: a device with one or more programs on it, as the tests drive it.
#ifndef FOLIOT_DEVICE_CONFORMANCE_SESSION_H_
#define FOLIOT_DEVICE_CONFORMANCE_SESSION_H_

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "device/conformance/reference.h"
#include "device/device.h"

namespace foliot {

// A lowered program with places for everything.
struct PlannedProgram {
  std::vector<Plan> plans;
  std::vector<std::byte> weights;
  std::vector<uint64_t> constant_bytes;  // by constant
};

// In one of the device's layouts, by its position.
Result<PlannedProgram> lower_and_plan(Device& device, std::span<const Graph> graphs, size_t layout = 0);

// The device's memory is sized for these programs, with pages for each of them
// twice over. Programs are preloaded, none is loaded.
class Session {
 public:
  Session(Device& device, std::vector<PlannedProgram> programs, uint64_t page_bytes);

  size_t pages(size_t program) const;
  Executable& executable(size_t program) { return *executables_.at(program); }
  // Loads a program into pages first, first + 1, ...; or downwards from `first`.
  void load(size_t program, PageIndex first, bool downwards = false);

  void write_inputs(size_t program, uint32_t plan, std::span<const Array> inputs);
  // Overwrites the output block, so that stale results are seen.
  void spoil_outputs(size_t program, uint32_t plan);
  std::vector<std::vector<std::byte>> read_outputs(size_t program, uint32_t plan);
  // All of it: inputs, the whole plan, outputs.
  std::vector<std::vector<std::byte>> run(size_t program, uint32_t plan, std::span<const Array> inputs);
  // Without touching inputs or outputs.
  void run_range(size_t program, uint32_t plan, OperatorRange range);
  const Plan& plan(size_t program, uint32_t plan) const { return programs_.at(program).plans.at(plan); }

 private:
  Device& device_;
  std::vector<PlannedProgram> programs_;
  uint64_t page_bytes_;
  uint64_t output_offset_ = 0;
  std::vector<std::unique_ptr<Executable>> executables_;
};

}  // namespace foliot

#endif  // FOLIOT_DEVICE_CONFORMANCE_SESSION_H_
