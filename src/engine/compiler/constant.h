// Constant: a tensor whose values are known when compiling: weights, and the
// shapes and indices that models compute with.
#ifndef FOLIOT_ENGINE_COMPILER_CONSTANT_H_
#define FOLIOT_ENGINE_COMPILER_CONSTANT_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foundation/core/tensor.h"

namespace foliot {

struct Constant {
  DataType type = DataType::kFloat32;
  Shape shape;
  std::shared_ptr<const std::vector<std::byte>> bytes;  // dense row-major, never null
};

// REQUIRES: as many bytes as type and shape need.
Constant make_constant(DataType type, Shape shape, std::vector<std::byte> bytes);
Constant make_constant(Shape shape, std::span<const int64_t> values);
Constant make_constant(Shape shape, std::span<const float> values);
Constant make_scalar(DataType type, double value);

// The elements converted: float16 and bfloat16 to their values, booleans to 0 and 1.
std::vector<double> to_doubles(const Constant& constant);
// As above; fractions are cut off.
std::vector<int64_t> to_integers(const Constant& constant);
// Back to `type`, as a cast of ONNX does; booleans become value != 0.
Constant from_doubles(DataType type, Shape shape, std::span<const double> values);
Constant from_integers(DataType type, Shape shape, std::span<const int64_t> values);

bool is_integer(DataType type);  // bool included
bool is_floating(DataType type);

// The elements where they lie. REQUIRES: kFloat32.
std::span<const float> floats(const Constant& constant);

// Makes constants of equal content one object, by which devices know that the graphs of
// several batch sizes share their weights. Forgets unused ones.
class ConstantPool {
 public:
  Constant intern(Constant constant);
  // What `make` gives, interned; or what it gave before for the same constant and the same `how`, the
  // bytes of all else that the result follows from.
  Constant derive(const Constant& from, std::string how, const std::function<Constant()>& make);

 private:
  using Bytes = std::vector<std::byte>;
  std::map<uint64_t, std::vector<std::weak_ptr<const Bytes>>> by_hash_;
  // What intern() returned before, so that large weights are hashed once only.
  std::map<const Bytes*, std::weak_ptr<const Bytes>> interned_;
  struct Derived {
    std::weak_ptr<const Bytes> from, bytes;
    DataType type = DataType::kFloat32;
    Shape shape;
  };
  std::map<std::pair<const Bytes*, std::string>, Derived> derived_;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_CONSTANT_H_
