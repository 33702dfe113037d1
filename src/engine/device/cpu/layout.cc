#include "engine/device/cpu/layout.h"

#include <cstring>
#include <vector>

#include "foundation/base/check.h"

namespace foliot {
namespace {

constexpr int64_t kRankMax = DNNL_MAX_NDIMS;
static_assert(kRankMax >= int64_t{kPlanRankMax});
// More than any tensor has bytes; keeps the arithmetic on damaged layouts from overflowing.
constexpr int64_t kExtentMax = int64_t{1} << 40;

Status damaged() { return Status::invalid_argument("damaged tensor layout; compile the model anew"); }

bool in_range(int64_t value, int64_t low, int64_t high) { return low <= value && value <= high; }

// Whether the descriptor is one that oneDNN itself could have made.
bool is_consistent(const dnnl_memory_desc_t& descriptor) {
  const dnnl_blocking_desc_t& blocking = descriptor.format_desc.blocking;
  int64_t block[DNNL_MAX_NDIMS];
  for (int64_t& size : block) size = 1;
  for (int i = 0; i < blocking.inner_nblks; ++i) {
    if (!in_range(blocking.inner_idxs[i], 0, descriptor.ndims - 1)) return false;
    if (!in_range(blocking.inner_blks[i], 1, 4096)) return false;
    int64_t& size = block[blocking.inner_idxs[i]];
    size *= blocking.inner_blks[i];
    if (size > 4096) return false;
  }
  double elements = 1;
  for (int d = 0; d < descriptor.ndims; ++d) {
    if (!in_range(descriptor.dims[d], 0, kExtentMax)) return false;
    if (!in_range(descriptor.padded_dims[d], descriptor.dims[d], kExtentMax)) return false;
    if (!in_range(blocking.strides[d], 0, kExtentMax)) return false;
    if (descriptor.padded_dims[d] % block[d] != 0) return false;
    const int64_t blocks = descriptor.padded_dims[d] / block[d];
    elements += static_cast<double>(blocks) * static_cast<double>(blocking.strides[d]);
  }
  return elements < static_cast<double>(kExtentMax);
}

}  // namespace

std::optional<dnnl::memory::data_type> dnnl_type(DataType type) {
  switch (type) {
    case DataType::kFloat32: return dnnl::memory::data_type::f32;
    case DataType::kFloat16: return dnnl::memory::data_type::f16;
    case DataType::kBfloat16: return dnnl::memory::data_type::bf16;
    case DataType::kInt32: return dnnl::memory::data_type::s32;
    case DataType::kInt8: return dnnl::memory::data_type::s8;
    case DataType::kUint8: return dnnl::memory::data_type::u8;
    default: return std::nullopt;
  }
}

Shape dense_strides(const Shape& shape) {
  Shape strides(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= shape[d] > 0 ? shape[d] : 1;
  }
  return strides;
}

Descriptor strided_descriptor(DataType type, const Shape& shape, const Shape& strides) {
  return Descriptor(shape, *dnnl_type(type), strides);
}

Descriptor dense_descriptor(DataType type, const Shape& shape) {
  const Shape dimensions = shape.empty() ? Shape{1} : shape;
  return strided_descriptor(type, dimensions, dense_strides(dimensions));
}

Descriptor any_descriptor(DataType type, const Shape& shape) {
  return Descriptor(shape.empty() ? Shape{1} : shape, *dnnl_type(type), dnnl::memory::format_tag::any);
}

Descriptor with_type(Descriptor descriptor, DataType type) {
  descriptor.data.data_type = static_cast<dnnl_data_type_t>(*dnnl_type(type));
  return descriptor;
}

Descriptor channels_last_descriptor(DataType type, const Shape& shape) {
  FOLIOT_CHECK(shape.size() >= 3 && shape.size() <= 5);
  using tag = dnnl::memory::format_tag;
  constexpr tag kTags[] = {tag::nwc, tag::nhwc, tag::ndhwc};
  return Descriptor(shape, *dnnl_type(type), kTags[shape.size() - 3]);
}

bool is_dense(const Descriptor& descriptor) {
  const dnnl_memory_desc_t& data = descriptor.data;
  if (!is_storable(descriptor) || data.format_desc.blocking.inner_nblks != 0) return false;
  const Shape shape = shape_of(descriptor);
  const Shape strides = dense_strides(shape);
  for (size_t d = 0; d < shape.size(); ++d) {
    if (data.padded_dims[d] != shape[d]) return false;
    if (data.format_desc.blocking.strides[d] != strides[d]) return false;
  }
  return true;
}

bool lies_row_major(const Descriptor& descriptor) {
  const dnnl_memory_desc_t& data = descriptor.data;
  const dnnl_blocking_desc_t& blocking = data.format_desc.blocking;
  if (!is_storable(descriptor) || blocking.inner_nblks > 1) return false;
  const Shape shape = shape_of(descriptor);
  const Shape strides = dense_strides(shape);
  for (size_t d = 0; d < shape.size(); ++d) {
    if (data.padded_dims[d] != shape[d]) return false;
    const bool blocked = blocking.inner_nblks == 1 && blocking.inner_idxs[0] == static_cast<int64_t>(d);
    // Blocks follow one another where they lie innermost.
    if (blocked && (strides[d] != 1 || blocking.strides[d] != blocking.inner_blks[0])) return false;
    if (!blocked && shape[d] > 1 && blocking.strides[d] != strides[d]) return false;
  }
  return true;
}

void flatten_rows(Descriptor* from, Descriptor* to) {
  if (!lies_row_major(*from) || !lies_row_major(*to)) return;
  for (Descriptor* descriptor : {from, to}) {
    const Shape elements{static_cast<int64_t>(element_count(shape_of(*descriptor)))};
    *descriptor = Descriptor(elements, descriptor->data_type(), Shape{1});
  }
}

bool is_storable(const Descriptor& descriptor) {
  const dnnl_memory_desc_t& data = descriptor.data;
  if (data.format_kind != dnnl_blocked || data.extra.flags != dnnl_memory_extra_flag_none) return false;
  if (data.offset0 != 0) return false;
  for (int d = 0; d < data.ndims; ++d)
    if (data.padded_offsets[d] != 0) return false;
  return true;
}

Shape shape_of(const Descriptor& descriptor) {
  return Shape(descriptor.data.dims, descriptor.data.dims + descriptor.data.ndims);
}

std::string layout_bytes(const Descriptor& descriptor) {
  FOLIOT_CHECK(is_storable(descriptor));
  if (is_dense(descriptor)) return {};
  const dnnl_memory_desc_t& data = descriptor.data;
  const dnnl_blocking_desc_t& blocking = data.format_desc.blocking;
  std::vector<int64_t> words{data.ndims, blocking.inner_nblks};
  for (int d = 0; d < data.ndims; ++d)
    words.insert(words.end(), {data.dims[d], data.padded_dims[d], blocking.strides[d]});
  for (int i = 0; i < blocking.inner_nblks; ++i)
    words.insert(words.end(), {blocking.inner_blks[i], blocking.inner_idxs[i]});
  std::string bytes(words.size() * sizeof(int64_t), '\0');
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

Result<Descriptor> read_layout(DataType type, const std::string& bytes) {
  if (bytes.size() % sizeof(int64_t) != 0 || bytes.size() < 2 * sizeof(int64_t)) return damaged();
  std::vector<int64_t> words(bytes.size() / sizeof(int64_t));
  std::memcpy(words.data(), bytes.data(), bytes.size());
  if (!in_range(words[0], 1, kRankMax) || !in_range(words[1], 0, kRankMax) || !dnnl_type(type)) return damaged();
  if (words.size() != static_cast<size_t>(2 + 3 * words[0] + 2 * words[1])) return damaged();

  Descriptor descriptor;
  dnnl_memory_desc_t& data = descriptor.data;
  data = {};
  data.ndims = static_cast<int>(words[0]);
  data.data_type = static_cast<dnnl_data_type_t>(*dnnl_type(type));
  data.format_kind = dnnl_blocked;
  dnnl_blocking_desc_t& blocking = data.format_desc.blocking;
  blocking.inner_nblks = static_cast<int>(words[1]);
  const int64_t* word = words.data() + 2;
  for (int d = 0; d < data.ndims; ++d) {
    data.dims[d] = *word++;
    data.padded_dims[d] = *word++;
    blocking.strides[d] = *word++;
  }
  for (int i = 0; i < blocking.inner_nblks; ++i) {
    blocking.inner_blks[i] = *word++;
    blocking.inner_idxs[i] = *word++;
  }
  if (!is_consistent(data)) return damaged();
  return descriptor;
}

Result<LayoutSize> layout_size(DataType type, const std::string& bytes) {
  FOLIOT_ASSIGN_OR_RETURN(const Descriptor layout, read_layout(type, bytes));
  return LayoutSize{element_count(shape_of(layout)), layout.get_size()};
}

Shape padded_shape(const Shape& shape, size_t rank) {
  FOLIOT_CHECK(shape.size() <= rank);
  Shape padded(rank - shape.size(), 1);
  padded.insert(padded.end(), shape.begin(), shape.end());
  return padded;
}

}  // namespace foliot
