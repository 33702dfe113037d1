// NanWatch: notices that an operator lost NaN.
//
// Some of oneDNN's functions make a number of NaN (primitive.h: loses_nan), and a convolution keeps them as
// post-operations all the same. The processor remembers that a maximum or a minimum met NaN, or that a sum or product
// had none as its result; reading that costs nothing while it computes. Only where it says so of an operator that
// loses NaN, what the operator reads is looked at: rows that have NaN or infinity there are to blame; else those that
// brought NaN or infinity to the plan; else all.
//
// Threading: begin() and end() belong to the thread that runs the plan, around each operator that is watched.
#ifndef FOLIOT_ENGINE_DEVICE_CPU_NAN_WATCH_H_
#define FOLIOT_ENGINE_DEVICE_CPU_NAN_WATCH_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/device/plan.h"
#include "foundation/core/action.h"

namespace foliot {

// The attribute that lowering gives to operators that lose NaN: into how many rows of the batch their operands divide,
// in order. 0: it is not known.
inline constexpr std::string_view kNanRows = "nan_rows";

class NanWatch {
 public:
  NanWatch() = default;
  explicit NanWatch(const Plan& plan);

  // Whether this operator of the plan loses NaN.
  bool watches(size_t operation) const { return operation < operands_.size() && !operands_[operation].empty(); }
  // Forgets what the processor remembers. The calling thread's state has that of its team's members (team.h).
  static void begin();
  // Adds the rows to blame, if the operator lost anything since begin(). `addresses`: by tensor.
  void end(size_t operation, std::span<std::byte* const> addresses, RowSet& failed_rows) const;

 private:
  // A tensor with fractions that is no constant.
  struct Watched {
    TensorIndex tensor;
    uint64_t row_bytes;
    uint32_t rows;  // 1: it is every row's, or not known whose
    DataType type;
  };

  Watched watched(const Plan& plan, TensorIndex index, uint32_t rows) const;

  uint32_t batch_size_ = 1;
  std::vector<Watched> inputs_;
  std::vector<std::vector<Watched>> operands_;  // by operator, up to the last that loses NaN
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_NAN_WATCH_H_
