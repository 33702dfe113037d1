// GraphLowering: turns one graph into one plan. Families of kernels ask it for
// operands in the layouts they want and for places for their results; it inserts
// the reorders, and knows what may be overwritten.
#ifndef FOLIOT_ENGINE_DEVICE_CPU_GRAPH_LOWERING_H_
#define FOLIOT_ENGINE_DEVICE_CPU_GRAPH_LOWERING_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/device/cpu/layout.h"
#include "engine/device/cpu/packing.h"
#include "engine/device/cpu/row_order.h"
#include "engine/device/graph.h"
#include "engine/device/plan.h"
#include "foundation/base/status.h"

namespace foliot {

// How the channels of images should lie.
enum class ActivationLayout {
  kBlocked,       // in blocks of a vector register, each block an image of its own
  kChannelsLast,  // innermost
};

struct Family;

class GraphLowering {
 public:
  // All must outlive it. The calling thread has as many OpenMP threads as the plan's EXECs on all lanes.
  GraphLowering(const Graph& graph, ActivationLayout layout, Packing& packing, const dnnl::engine& engine);

  // Call once. Errors: kUnimplemented naming the node.
  Result<Plan> lower();

  // For families, about the node being lowered:
  const dnnl::engine& engine() const { return engine_; }
  // The kernels of a plan must suit these, too: its EXECs have so many on fewer lanes.
  const std::vector<uint32_t>& fewer_threads() const { return fewer_threads_; }
  ActivationLayout activation_layout() const { return activation_layout_; }
  const Value& value(ValueIndex value) const { return values_.at(value); }
  const Shape& shape(ValueIndex value) const { return values_.at(value).shape; }
  static bool has(const Node& node, size_t i) { return i < node.inputs.size() && node.inputs[i] != kNoValue; }

  // Whether the node has operands or results of narrow types (operator.h) without
  // being one that only moves them, or that computes in integers.
  bool computes_narrow(const Node& node) const;

  // The layout that a value has at present; a constant's is dense. REQUIRES: a
  // type that oneDNN knows.
  Descriptor layout(ValueIndex value) const;
  bool is_dense(ValueIndex value) const;
  // The value's tensor, as it is.
  TensorIndex present(ValueIndex value);
  // A tensor that holds the value densely.
  TensorIndex dense(ValueIndex value);
  // A tensor that holds the value in `wanted`. `from` is how its dense form is
  // to be seen, where that differs from its own shape.
  TensorIndex in_layout(ValueIndex value, const Descriptor& wanted);
  TensorIndex in_layout(ValueIndex value, const Descriptor& wanted, const Descriptor& from);
  // For a constant: the layout that another graph, or node, has packed it in.
  std::optional<Descriptor> packed_layout(ValueIndex value, const Descriptor& from) const;

  // Makes the tensor that a node's output is written to.
  TensorIndex result(ValueIndex value, const Descriptor& layout);
  TensorIndex dense_result(ValueIndex value);
  // Makes the output share the storage of `operand`, from `offset` bytes on, in
  // this layout of so many bytes. REQUIRES: may_view(value).
  TensorIndex result_over(ValueIndex value, TensorIndex operand, const std::string& layout, uint64_t bytes,
                          uint64_t offset = 0);
  // The same in the layout of the operand, whole: a result written over it.
  TensorIndex result_like(ValueIndex value, TensorIndex operand);
  // Whether `result` may be written over `operand`, which the node reads for the last time.
  bool may_overwrite(const Node& node, ValueIndex operand, ValueIndex result) const;
  bool is_output(ValueIndex value) const { return output_.at(value); }
  // Whether a view of another tensor can stand for a value: not for a graph's
  // output, which needs a tensor of its own.
  bool may_view(ValueIndex result) const { return !is_output(result); }

  // The value under another shape of as many elements, for one use.
  ValueIndex reshaped(ValueIndex value, const Shape& shape);
  // Lowers another node in place of this one; its inputs are this one's or reshaped() ones.
  Status lower_instead(const Node& node);

  // Starts an operator for this node, with its attributes and post-operations.
  static Operator begin(const Node& node, std::string_view kernel = {});
  // Adds the tensors that the post-operations read, as they are.
  void add_post_inputs(const Node& node, Operator& operation);
  // The same from a node whose second operand are indices: it refuses rows that bring one out of range.
  Status emit_indexing(const Node& node, std::string_view kernel);
  // An own kernel from dense operands to a dense result, with a scratchpad of so many bytes.
  Status emit_dense(const Node& node, std::string_view kernel, uint64_t scratchpad_bytes = 0);
  // Finishes an operator; one that is not Foliot's own gets the name of oneDNN's kernel
  // (describe() may have been given one to ask for) and a scratchpad.
  Status emit(Operator operation);

 private:
  Status lower_node(const Node& node);
  // Lowers the first `fused` post-operations with the node, the others as nodes.
  Result<bool> lower_split(const Node& node, size_t fused);
  Result<bool> lower_fused(const Node& node);
  // Notes how the operands of what may lose NaN divide into rows (nan_watch.h).
  Node with_rows(const Node& node) const;
  // Whether oneDNN's kernels would give something else than the sum of the products.
  bool multiplies_inexactly(const Node& node) const;
  // A narrow node without a kernel that is right: in float32, between reorders.
  Status lower_widened(const Node& node);
  ValueIndex widened(ValueIndex value);
  Status finish_outputs();
  ValueIndex add_value(const Value& like);
  TensorIndex add_tensor(Tensor tensor);
  // Sets the kernel's name. Returns the bytes of the scratchpad that it needs on all threads, or on those
  // of fewer lanes, whichever are more.
  Result<uint64_t> choose_kernel(const Family& family, Operator& operation) const;
  // kNoTensor for 0 bytes.
  TensorIndex add_scratchpad(const Operator& operation, uint64_t bytes);
  TensorIndex add_view(const Value& value, TensorIndex under, const std::string& layout, uint64_t bytes,
                       uint64_t offset = 0);
  TensorIndex constant_tensor(const Value& value, uint32_t constant, const std::string& layout, uint64_t bytes);
  TensorIndex storage(TensorIndex tensor) const;
  Status reorder(TensorIndex from, TensorIndex to);

  const Graph& graph_;
  const ActivationLayout activation_layout_;
  Packing& packing_;
  const dnnl::engine& engine_;
  const std::vector<uint32_t> fewer_threads_;
  const RowOrder row_order_;
  Plan plan_;
  std::vector<Value> values_;                                         // the graph's, then those between split nodes
  std::vector<TensorIndex> tensor_;                                   // by value; kNoTensor: not yet
  std::vector<bool> output_;                                          // by value: an output of the graph
  std::vector<uint32_t> uses_;                                        // by value
  std::vector<uint32_t> storage_uses_;                                // by tensor that owns storage: uses still to come
  std::map<std::pair<ValueIndex, std::string>, TensorIndex> copies_;  // in other layouts
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_GRAPH_LOWERING_H_
