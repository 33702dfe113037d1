// ProgramRunner: a program alone on its device, to measure it, to check it, or to
// run it once.
//
// Threading: one thread.
#ifndef FOLIOT_ENGINE_COMPILER_PROGRAM_RUNNER_H_
#define FOLIOT_ENGINE_COMPILER_PROGRAM_RUNNER_H_

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "engine/device/device.h"
#include "engine/program/program.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

class ProgramRunner {
 public:
  // Allocates on `device`, which must be fresh, and loads. `program`, `weights`
  // and `device` must outlive the runner. Errors also: kInvalidArgument if the program
  // was compiled for a device that computes otherwise (Device::runs()).
  static Result<std::unique_ptr<ProgramRunner>> create(Device& device, const Program& program,
                                                       std::span<const std::byte> weights);
  static Result<std::unique_ptr<ProgramRunner>> create(Device& device, const Program& program,
                                                       std::shared_ptr<WeightsSource> weights);

  // How long LOAD took.
  Duration load_duration() const { return load_duration_; }

  // Runs a plan on an input block and returns how long EXEC took.
  // REQUIRES: as many bytes as the plan's blocks have.
  Result<Duration> run(size_t plan, std::span<const std::byte> input, std::span<std::byte> output);
  // Rows that operators refused since run() began.
  const RowSet& failed_rows() const { return failed_rows_; }

  // The same in its parts; a range continues from what those before it left.
  void put_input(std::span<const std::byte> input) { device_.copy_to_io(0, input); }
  Result<Duration> run_range(size_t plan, OperatorRange range);
  void get_output(std::span<std::byte> output) { device_.copy_from_io(output_offset_, output); }

 private:
  ProgramRunner(Device& device, uint64_t output_offset) : device_(device), output_offset_(output_offset) {}
  Status start(const Program& program, std::shared_ptr<WeightsSource> weights);

  Device& device_;
  uint64_t output_offset_;
  std::unique_ptr<Executable> executable_;
  Duration load_duration_;
  RowSet failed_rows_;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_PROGRAM_RUNNER_H_
