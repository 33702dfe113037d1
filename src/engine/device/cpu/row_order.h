// RowOrder: which values of a graph divide, as they lie, into the rows of its batch: the first part belongs to the
// first row, and so on. By it an operator knows whose an element is.
#ifndef FOLIOT_ENGINE_DEVICE_CPU_ROW_ORDER_H_
#define FOLIOT_ENGINE_DEVICE_CPU_ROW_ORDER_H_

#include <vector>

#include "engine/device/graph.h"

namespace foliot {

class RowOrder {
 public:
  explicit RowOrder(const Graph& graph);

  // False where it is not known, too. Values that lowering adds are none of them.
  bool is_by_row(ValueIndex value) const { return value < by_row_.size() && by_row_[value]; }

 private:
  bool keeps_rows(const Graph& graph, const Node& node) const;
  // Whether its first dimension is the batch.
  static bool leads(const Graph& graph, ValueIndex value);

  std::vector<bool> by_row_;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_ROW_ORDER_H_
