// PreparedProgram: the kernels of a program's plans, made for one plan after the
// other. Programs with identical plans (many copies of one model) share one.
//
// Threading: prepare() belongs to one thread at a time and run() to one, over all
// programs that share it; both may be called at the same time.
#ifndef FOLIOT_DEVICE_CPU_PREPARED_PROGRAM_H_
#define FOLIOT_DEVICE_CPU_PREPARED_PROGRAM_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/cpu/kernel.h"
#include "device/cpu/layout.h"
#include "device/plan.h"

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
  explicit PreparedProgram(size_t plan_count) : plans_(plan_count) {}

  // Makes the kernels of the plan at this position, unless it was done before.
  // Errors: kInvalidArgument, naming operator and batch size. REQUIRES: check_plan()
  // is ok, and it is the same plan each time.
  Status prepare(uint32_t position, const Plan& plan, const dnnl::engine& engine, const dnnl::stream& stream);
  // REQUIRES: prepared.
  Status run(uint32_t position, OperatorRange range, const Bases& bases);

 private:
  struct Location {
    Place place;
    uint64_t offset;
  };
  struct PreparedPlan {
    std::vector<Location> locations;    // by tensor
    std::vector<std::byte*> addresses;  // by tensor, as of the last run
    std::vector<std::unique_ptr<Kernel>> kernels;
    // Set last: what is above is there.
    std::atomic<bool> ready{false};
  };

  std::vector<PreparedPlan> plans_;
};

// Equal for equal plans only (128 bits of hash).
std::string plans_key(std::span<const Plan> plans);

}  // namespace foliot

#endif  // FOLIOT_DEVICE_CPU_PREPARED_PROGRAM_H_
