// NanWatch: notices that NaN got lost while a plan ran.
//
// Some of oneDNN's functions make a number of NaN (primitive.h: loses_nan), and a convolution keeps them as
// post-operations all the same. The processor remembers that a maximum or a minimum met NaN, or that a sum or product
// had none as its result; reading that costs nothing while it computes. Only where it says so, the inputs are looked
// at: a row that brought NaN or infinity is one whose answer can't be trusted.
//
// Threading: begin() and end() belong to the thread that runs the plan, around the run.
#ifndef FOLIOT_ENGINE_DEVICE_CPU_NAN_WATCH_H_
#define FOLIOT_ENGINE_DEVICE_CPU_NAN_WATCH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/device/plan.h"
#include "foundation/core/action.h"

namespace foliot {

class NanWatch {
 public:
  NanWatch() = default;
  explicit NanWatch(const Plan& plan);

  // Whether an operator of the plan loses NaN; without one there is nothing to do.
  bool is_needed() const { return needed_; }
  // Forgets what the processor remembers. The calling thread's state has that of its team's members (team.h).
  void begin() const;
  // Adds the rows to blame, if anything was lost since begin(). `input`: the plan's input block.
  void end(const std::byte* input, RowSet* failed_rows) const;

 private:
  // An input with fractions.
  struct Watched {
    uint64_t offset;
    uint64_t row_elements;  // of all of it, if it has no rows
    uint32_t rows;          // 1: it is every row's
    DataType type;
  };

  bool needed_ = false;
  uint32_t batch_size_ = 1;
  std::vector<Watched> inputs_;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_NAN_WATCH_H_
