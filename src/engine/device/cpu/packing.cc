#include "engine/device/cpu/packing.h"

namespace foliot {
namespace {

// Unlike layout_bytes(), also distinguishes dense tensors of different shapes.
std::string exact_key(const Descriptor& descriptor) {
  std::string key = layout_bytes(descriptor);
  for (int64_t extent : shape_of(descriptor)) key += "," + std::to_string(extent);
  return key;
}

std::vector<std::byte> reordered(const std::vector<std::byte>& bytes, const Descriptor& from, const Descriptor& to,
                                 const dnnl::engine& engine) {
  std::vector<std::byte> result(to.get_size());
  // oneDNN only reads from the source, but its interface has no const.
  dnnl::memory source(from, engine, const_cast<std::byte*>(bytes.data()));
  dnnl::memory destination(to, engine, result.data());
  dnnl::stream stream(engine);
  dnnl::reorder(source, destination).execute(stream, source, destination);
  stream.wait();
  return result;
}

}  // namespace

uint32_t Packing::dense(const Constant& constant) {
  const Key key{constant.get(), {}};
  if (const auto found = indices_.find(key); found != indices_.end()) return found->second;
  constants_.push_back(*constant);
  held_.push_back(constant);
  return indices_[key] = static_cast<uint32_t>(constants_.size() - 1);
}

uint32_t Packing::packed(const Constant& constant, const Descriptor& from, const Descriptor& to) {
  chosen_.insert_or_assign({constant.get(), exact_key(from)}, to);
  if (from == to && is_dense(from)) return dense(constant);
  const Key key{constant.get(), {exact_key(from), exact_key(to)}};
  if (const auto found = indices_.find(key); found != indices_.end()) return found->second;

  constants_.push_back(reordered(*constant, from, to, engine_));
  held_.push_back(constant);
  return indices_[key] = static_cast<uint32_t>(constants_.size() - 1);
}

Packing::Constant Packing::widened(const Constant& constant, DataType type, const Shape& shape) {
  Constant& wide = widened_[constant.get()];
  if (wide == nullptr) {
    wide = std::make_shared<const std::vector<std::byte>>(
        reordered(*constant, dense_descriptor(type, shape), dense_descriptor(DataType::kFloat32, shape), engine_));
    held_.push_back(constant);
  }
  return wide;
}

std::optional<Descriptor> Packing::chosen(const Constant& constant, const Descriptor& from) const {
  const auto found = chosen_.find({constant.get(), exact_key(from)});
  if (found == chosen_.end()) return std::nullopt;
  return found->second;
}

}  // namespace foliot
