// Session: a device with one or more programs on it, as the tests drive it.
#ifndef FOLIOT_ENGINE_DEVICE_CONFORMANCE_SESSION_H_
#define FOLIOT_ENGINE_DEVICE_CONFORMANCE_SESSION_H_

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "engine/device/conformance/reference.h"
#include "engine/device/device.h"

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
// twice over, and a context and blocks of the io cache for each lane and one more. Programs
// are preloaded and prepared for every width, none is loaded.
class Session {
 public:
  Session(Device& device, std::vector<PlannedProgram> programs, uint64_t page_bytes);

  size_t pages(size_t program) const;
  Executable& executable(size_t program) { return *executables_.at(program); }
  // Loads a program into pages first, first + 1, ...; or downwards from `first`.
  void load(size_t program, PageIndex first, bool downwards = false);

  // Of the blocks that belong to a context.
  void write_inputs(size_t program, uint32_t plan, std::span<const Array> inputs, ContextIndex context = 0);
  // Overwrites the output block, so that stale results are seen.
  void spoil_outputs(size_t program, uint32_t plan, ContextIndex context = 0);
  std::vector<std::vector<std::byte>> read_outputs(size_t program, uint32_t plan, ContextIndex context = 0);
  // All of it: inputs, the whole plan, outputs; on all lanes.
  std::vector<std::vector<std::byte>> run(size_t program, uint32_t plan, std::span<const Array> inputs);
  std::vector<std::vector<std::byte>> run(size_t program, uint32_t plan, std::span<const Array> inputs,
                                          LaneInterval lanes, ContextIndex context);
  // Without touching inputs or outputs.
  void run_range(size_t program, uint32_t plan, OperatorRange range);
  void run_part(size_t program, uint32_t plan, const ExecPart& part);
  // What the last run() of a context noted; range by range, all is added.
  RowSet& failed_rows(ContextIndex context = 0) { return failed_rows_.at(context); }
  uint32_t lanes() const { return device_.lanes(); }
  const Plan& plan(size_t program, uint32_t plan) const { return programs_.at(program).plans.at(plan); }

 private:
  Device& device_;
  std::vector<PlannedProgram> programs_;
  uint64_t page_bytes_;
  uint64_t block_bytes() const { return output_offset_ + output_bytes_; }

  uint64_t output_offset_ = 0;  // within the blocks of a context
  uint64_t output_bytes_ = 0;
  std::vector<std::unique_ptr<Executable>> executables_;
  std::array<RowSet, kContextsMax> failed_rows_;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CONFORMANCE_SESSION_H_
