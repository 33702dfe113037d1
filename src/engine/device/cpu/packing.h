// Packing: the constants of one program, each in the layouts that its kernels
// want. The first graph that uses a constant chooses; the others follow.
#ifndef FOLIOT_ENGINE_DEVICE_CPU_PACKING_H_
#define FOLIOT_ENGINE_DEVICE_CPU_PACKING_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/device/cpu/layout.h"
#include "engine/device/graph.h"

namespace foliot {

class Packing {
 public:
  using Constant = std::shared_ptr<const std::vector<std::byte>>;

  explicit Packing(const dnnl::engine& engine) : engine_(engine) {}

  // The constant as it is. Returns its index in constants().
  uint32_t dense(const Constant& constant);
  // The constant, which lies in memory as `from` says, in the layout `to`.
  uint32_t packed(const Constant& constant, const Descriptor& from, const Descriptor& to);
  // The constant's elements as float32, the same object whenever it is asked for.
  Constant widened(const Constant& constant, DataType type, const Shape& shape);
  // The layout that `packed` was last asked for, seen as `from`.
  std::optional<Descriptor> chosen(const Constant& constant, const Descriptor& from) const;

  std::vector<std::vector<std::byte>> take_constants() && { return std::move(constants_); }

 private:
  // Identity of the constant, how it lies, how it should lie.
  using Key = std::pair<const void*, std::pair<std::string, std::string>>;

  const dnnl::engine& engine_;
  std::vector<std::vector<std::byte>> constants_;
  std::map<Key, uint32_t> indices_;
  std::map<std::pair<const void*, std::string>, Descriptor> chosen_;
  std::map<const void*, Constant> widened_;
  // Keys are addresses, so the constants must live as long as they do.
  std::vector<Constant> held_;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_PACKING_H_
