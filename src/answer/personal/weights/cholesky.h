// Cholesky factors of positive definite matrices, of d rows: A = L L', kept up to date as
// A grows by products of feature vectors (Velox, 2.2).
//
// L is packed by columns. A column begins at a row that is a multiple of kRowsGranule, with zeros above
// the diagonal, and ends at one: at d = 100 that is 23 kB of float32. Vectors have padded_rows(d)
// entries, those beyond d zero.
//
// Threading: any.
#ifndef FOLIOT_ANSWER_PERSONAL_WEIGHTS_CHOLESKY_H_
#define FOLIOT_ANSWER_PERSONAL_WEIGHTS_CHOLESKY_H_

#include <cstddef>
#include <span>

namespace foliot {

constexpr size_t kRowsGranule = 8;
constexpr size_t padded_rows(size_t rows) { return (rows + kRowsGranule - 1) / kRowsGranule * kRowsGranule; }
// Right sides of solve_lower_many().
constexpr size_t kSidesCount = 3 * kRowsGranule;
// Entries of a packed matrix.
constexpr size_t factor_size(size_t rows) {
  size_t size = 0;
  for (size_t begin = 0; begin < rows; begin += kRowsGranule) {
    const size_t columns = rows - begin < kRowsGranule ? rows - begin : kRowsGranule;
    size += columns * (padded_rows(rows) - begin);
  }
  return size;
}

// The functions for this processor. T is float or double.
template <typename T>
struct Cholesky {
  // The factor of A becomes that of A + x x' for each of `count` vectors, by rotations: 2 d^2 operations
  // each. Overwrites the vectors. False: a pivot is not positive, and the factor is of no use.
  bool (*update)(T* factor, size_t rows, T* features, size_t count);
  // A becomes A + x x' for each of `count` vectors.
  void (*add_products)(T* matrix, size_t rows, const T* features, size_t count);
  // A becomes its factor: d^3 / 3 operations. False: as update().
  bool (*decompose)(T* matrix, size_t rows);
  // x becomes the solution of L s = x; of L' s = x.
  void (*solve_lower)(const T* factor, size_t rows, T* x);
  void (*solve_upper)(const T* factor, size_t rows, T* x);
  // As solve_lower(), of kSidesCount right sides at once: `sides` has padded_rows(rows) rows of as many entries.
  void (*solve_lower_many)(const T* factor, size_t rows, T* sides);
  // products[i] = rows[i] . vector; `width` is a multiple of kRowsGranule.
  void (*multiply)(const T* rows, size_t count, size_t width, const T* vector, T* products);
  // Sherman-Morrison, to be compared with update(): the inverse of A, whole, becomes that of
  // A + x x'. `product` is memory for a vector.
  bool (*update_inverse)(T* inverse, size_t rows, const T* x, T* product);
};

template <typename T>
const Cholesky<T>& cholesky();

// Of two vectors of the same padded size.
inline float product(std::span<const float> a, std::span<const float> b) {
  float result = 0;
  cholesky<float>().multiply(a.data(), 1, a.size(), b.data(), &result);
  return result;
}

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_WEIGHTS_CHOLESKY_H_
