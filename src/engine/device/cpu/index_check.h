// IndexCheck: which rows of a batch bring indices that are out of range. A kernel gives what it likes for them, since
// they are refused.
//
// Threading: as a kernel's.
#ifndef FOLIOT_ENGINE_DEVICE_CPU_INDEX_CHECK_H_
#define FOLIOT_ENGINE_DEVICE_CPU_INDEX_CHECK_H_

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "engine/device/cpu/operator_view.h"
#include "foundation/core/action.h"

namespace foliot {

// The attribute that lowering gives to operators that read indices: into how many rows of the batch they divide, in
// order. 0: it is not known, and nothing is checked.
inline constexpr std::string_view kIndexRows = "index_rows";

class IndexCheck {
 public:
  // `extent`: an index is within [-extent, extent).
  IndexCheck(const OperatorView& view, int64_t extent)
      : extent_(extent),
        count_(static_cast<int64_t>(element_count(view.input(1).shape))),
        rows_(view.attributes().has(kIndexRows) ? view.attributes().integer(kIndexRows) : 0) {
    if (rows_ < 0 || rows_ > int64_t{kBatchSizeMax}) rows_ = 0;
  }

  template <typename Index>
  void run(const Index* indices) {
    failed_rows_.reset();
    if (rows_ == 0) return;
    bool wrong = false;
    for (int64_t i = 0; i < count_; ++i) wrong |= is_outside(indices[i]);
    for (int64_t i = 0; wrong && i < count_; ++i)
      if (is_outside(indices[i])) failed_rows_.set(static_cast<size_t>(i * rows_ / count_));
  }

  // nullptr: it is not known which rows they are.
  const RowSet* failed_rows() const { return rows_ == 0 ? nullptr : &failed_rows_; }

 private:
  bool is_outside(int64_t index) const { return index < -extent_ || index >= extent_; }

  int64_t extent_, count_, rows_;
  RowSet failed_rows_;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_INDEX_CHECK_H_
