// OperatorView: one operator with the tensors of its plan, as the families of
// kernels see it: when lowering asks what a oneDNN primitive would need, and
// when prepare() makes the kernel.
#ifndef FOLIOT_ENGINE_DEVICE_CPU_OPERATOR_VIEW_H_
#define FOLIOT_ENGINE_DEVICE_CPU_OPERATOR_VIEW_H_

#include <string_view>

#include "engine/device/cpu/layout.h"
#include "engine/device/plan.h"

namespace foliot {

class OperatorView {
 public:
  // Both must outlive the view. REQUIRES: all tensor indices are in range.
  OperatorView(const Operator& operation, const std::vector<Tensor>& tensors, const dnnl::engine& engine)
      : operator_(operation), tensors_(tensors), engine_(engine) {}

  const Operator& operation() const { return operator_; }
  const Attributes& attributes() const { return operator_.attributes; }
  const dnnl::engine& engine() const { return engine_; }

  bool has_input(size_t i) const { return i < operator_.inputs.size() && operator_.inputs[i] != kNoTensor; }
  TensorIndex input_index(size_t i) const { return operator_.inputs.at(i); }
  TensorIndex output_index(size_t i = 0) const { return operator_.outputs.at(i); }
  const Tensor& tensor(TensorIndex index) const { return tensors_.at(index); }
  const Tensor& input(size_t i) const { return tensors_.at(input_index(i)); }
  const Tensor& output(size_t i = 0) const { return tensors_.at(output_index(i)); }

  // The layout of a tensor; a dense row-major one is described under `shape`,
  // which has as many elements. REQUIRES: the layout was checked.
  Descriptor descriptor(TensorIndex tensor, const Shape& shape) const;
  Descriptor input_descriptor(size_t i) const { return descriptor(input_index(i), input(i).shape); }
  Descriptor input_descriptor(size_t i, const Shape& shape) const { return descriptor(input_index(i), shape); }
  Descriptor output_descriptor() const { return descriptor(output_index(), output().shape); }
  Descriptor output_descriptor(const Shape& shape) const { return descriptor(output_index(), shape); }

  // Whether two tensors are the same bytes of memory.
  bool same_storage(TensorIndex a, TensorIndex b) const;

 private:
  const Operator& operator_;
  const std::vector<Tensor>& tensors_;
  const dnnl::engine& engine_;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_OPERATOR_VIEW_H_
