// PreparedProgram: the kernels of a program's plans, made for one plan and one width after
// the other. Programs with identical plans (many copies of one model) share one.
//
// Each lane interval has kernels of its own, since a kernel holds the addresses of its run;
// the code that they run is shared (oneDNN's cache of primitives).
//
// Threading: prepare() belongs to one thread at a time and run() to one for each lane
// interval, over all programs that share it; all may be called at the same time.
#ifndef FOLIOT_ENGINE_DEVICE_CPU_PREPARED_PROGRAM_H_
#define FOLIOT_ENGINE_DEVICE_CPU_PREPARED_PROGRAM_H_

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/device/cpu/kernel.h"
#include "engine/device/cpu/layout.h"
#include "engine/device/cpu/nan_watch.h"
#include "engine/device/plan.h"
#include "foundation/base/status.h"
#include "foundation/core/exec_part.h"

namespace foliot {

// Where the four places of a plan begin at present.
struct Bases {
  std::byte* weights = nullptr;
  std::byte* workspace = nullptr;
  std::byte* input = nullptr;
  std::byte* output = nullptr;
};

class PreparedProgram {
 public:
  PreparedProgram(size_t plan_count, uint32_t lanes) : lanes_(lanes), plans_(plan_count) {}

  // Makes the kernels of the plan at this position for all intervals of `width` lanes and
  // the calling thread's number of threads, unless it was done before. Errors:
  // kInvalidArgument, naming operator and batch size. REQUIRES: check_plan() is ok, and it is
  // the same plan each time.
  Status prepare(uint32_t position, uint32_t width, const Plan& plan, const dnnl::engine& engine,
                 const dnnl::stream& stream);
  // As Executable::run(). REQUIRES: prepared.
  Status run(uint32_t position, LaneInterval lanes, OperatorRange range, const Bases& bases,
             RowSet* failed_rows = nullptr);

 private:
  static constexpr size_t kWidthsMax = 33;
  struct Location {
    Place place;
    uint64_t offset;
  };
  // What one interval of lanes runs.
  struct LaneKernels {
    std::vector<std::byte*> addresses;  // by tensor, as of the last run
    std::vector<std::unique_ptr<Kernel>> kernels;
    std::vector<size_t> refusing;  // positions of those that have failed_rows()
  };
  struct Width {
    std::vector<LaneKernels> intervals;  // ascending
    // Set last: what is above is there, and the plan's locations.
    std::atomic<bool> ready{false};
  };
  struct PreparedPlan {
    std::vector<Location> locations;  // by tensor
    NanWatch watch;
    std::array<Width, kWidthsMax> width;  // by width_index()
  };
  // Powers of two by their exponents; all lanes, if their number is none, last.
  static size_t width_index(uint32_t width) {
    return std::has_single_bit(width) ? static_cast<size_t>(std::countr_zero(width)) : kWidthsMax - 1;
  }

  const uint32_t lanes_;
  std::vector<PreparedPlan> plans_;
};

// Equal for equal plans only (128 bits of hash).
std::string plans_key(std::span<const Plan> plans);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_PREPARED_PROGRAM_H_
