// PreparedProgram: the kernels of a program's plans, ready to run. Programs with
// identical plans (many copies of one model) share one.
#ifndef FOLIOT_DEVICE_CPU_PREPARED_PROGRAM_H_
#define FOLIOT_DEVICE_CPU_PREPARED_PROGRAM_H_

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
  // Errors: kInvalidArgument if a plan is damaged.
  static Result<std::shared_ptr<PreparedProgram>> prepare(std::span<const Plan> plans, uint64_t weights_bytes,
                                                          const dnnl::engine& engine, const dnnl::stream& stream);

  // Threading: one thread at a time, over all programs that share it.
  Status run(uint32_t plan, OperatorRange range, const Bases& bases);
  size_t plan_count() const { return plans_.size(); }

 private:
  struct Location {
    Place place;
    uint64_t offset;
  };
  struct PreparedPlan {
    std::vector<Location> locations;    // by tensor
    std::vector<std::byte*> addresses;  // by tensor, as of the last run
    std::vector<std::unique_ptr<Kernel>> kernels;
    size_t ran = 0;  // kernels [0, ran) have run before
  };

  std::vector<PreparedPlan> plans_;
};

// Equal for equal plans only (128 bits of hash).
std::string plans_key(std::span<const Plan> plans);

}  // namespace foliot

#endif  // FOLIOT_DEVICE_CPU_PREPARED_PROGRAM_H_
