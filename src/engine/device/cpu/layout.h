// Layout: the order of a tensor's elements in memory, as oneDNN describes it, and its
// form in Tensor::layout.
//
// Dense row-major layouts are kept as an empty string. Others are blocked ones,
// kept as little-endian int64: rank, number of inner blocks, then for each
// dimension its extent, padded extent and stride, then for each inner block its
// size and dimension.
#ifndef FOLIOT_ENGINE_DEVICE_CPU_LAYOUT_H_
#define FOLIOT_ENGINE_DEVICE_CPU_LAYOUT_H_

#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <string>

#include "engine/device/plan.h"
#include "engine/device/plan_check.h"
#include "foundation/base/status.h"
#include "foundation/core/tensor.h"

namespace foliot {

using Descriptor = dnnl::memory::desc;

// nullopt: oneDNN has no such element type.
std::optional<dnnl::memory::data_type> dnnl_type(DataType type);

// REQUIRES (all of these): dnnl_type(type). A scalar is described as [1].
Descriptor dense_descriptor(DataType type, const Shape& shape);
Descriptor any_descriptor(DataType type, const Shape& shape);
// Strides are in elements.
Descriptor strided_descriptor(DataType type, const Shape& shape, const Shape& strides);

// The same layout of elements of another type.
Descriptor with_type(Descriptor descriptor, DataType type);
// Channels (dimension 1) innermost. REQUIRES: 3 to 5 dimensions.
Descriptor channels_last_descriptor(DataType type, const Shape& shape);

// Strides in elements of a dense row-major tensor.
Shape dense_strides(const Shape& shape);

// Whether this is the descriptor of a dense row-major tensor, with the strides
// that dense_descriptor() gives even where an extent of 1 leaves them open:
// kernels are chosen by them.
bool is_dense(const Descriptor& descriptor);
// Whether the elements lie in row-major order, whatever the descriptor looks
// like, such as channels last or in blocks over 1x1 images.
bool lies_row_major(const Descriptor& descriptor);
// As vectors, where both lie row-major. oneDNN looks up what it made before by layouts that
// are equal but for strides of dimensions of one entry, and may choose another kernel for
// each of them: which one a reorder gets would depend on what was made before it.
void flatten_rows(Descriptor* from, Descriptor* to);
// Whether `layout_bytes` can keep it: blocked, without compensation data.
bool is_storable(const Descriptor& descriptor);
Shape shape_of(const Descriptor& descriptor);

// What Tensor::layout holds. REQUIRES: is_storable().
std::string layout_bytes(const Descriptor& descriptor);
// The way back. Errors: kInvalidArgument for damaged bytes.
Result<Descriptor> read_layout(DataType type, const std::string& bytes);

// As ReadLayout (engine/device/plan_check.h).
Result<LayoutSize> layout_size(DataType type, const std::string& bytes);

// The shape with ones in front, so that it has `rank` dimensions.
Shape padded_shape(const Shape& shape, size_t rank);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_LAYOUT_H_
