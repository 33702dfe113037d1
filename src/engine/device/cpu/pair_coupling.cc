// The probabilities of classes from those of every two of them: "Probability Estimates for
// Multi-class Classification by Pairwise Coupling", Wu, Lin and Weng (2004), section 4.2.
#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/device/cpu/families.h"
#include "engine/device/cpu/fusion.h"

namespace foliot {
namespace {

constexpr int kRoundsMax = 100;

class PairCouplingKernel : public Kernel {
 public:
  explicit PairCouplingKernel(const OperatorView& view)
      : x_(view.input_index(0)),
        y_(view.output_index()),
        rows_(view.output().shape[0]),
        classes_(static_cast<size_t>(view.output().shape[1])),
        matrix_(classes_ * classes_),
        product_(classes_) {}

  Status run(Addresses addresses) override {
    const size_t pairs = classes_ * (classes_ - 1) / 2;
    for (int64_t row = 0; row < rows_; ++row) {
      fill_matrix(reinterpret_cast<const float*>(addresses[x_]) + static_cast<size_t>(row) * pairs);
      solve(reinterpret_cast<float*>(addresses[y_]) + static_cast<size_t>(row) * classes_);
    }
    return Status();
  }

 private:
  // Q, with r(i, j) the probability of i against j: off the diagonal -r(j, i) r(i, j), on it
  // the sum of r(j, i)^2.
  void fill_matrix(const float* r) {
    for (size_t i = 0; i < classes_; ++i) matrix_[i * classes_ + i] = 0;
    for (size_t i = 0; i < classes_; ++i) {
      for (size_t j = i + 1; j < classes_; ++j, ++r) {
        const float wins = *r, loses = 1 - wins;
        matrix_[i * classes_ + i] += loses * loses;
        matrix_[j * classes_ + j] += wins * wins;
        matrix_[i * classes_ + j] = matrix_[j * classes_ + i] = -loses * wins;
      }
    }
  }

  // The p of sum 1 for which p'Qp is least, one element after the other.
  void solve(float* p) {
    const float limit = 0.005F / static_cast<float>(classes_);
    std::fill_n(p, classes_, 1 / static_cast<float>(classes_));
    for (int round = 0; round < kRoundsMax; ++round) {
      float total = multiply(p);
      float error = 0;
      for (float element : product_) error = std::max(error, std::fabs(element - total));
      if (error < limit) return;
      for (size_t i = 0; i < classes_; ++i) {
        const float own = matrix_[i * classes_ + i];
        const float step = (total - product_[i]) / own;
        p[i] += step;
        total = (total + step * (step * own + 2 * product_[i])) / (1 + step) / (1 + step);
        for (size_t j = 0; j < classes_; ++j) {
          product_[j] = (product_[j] + step * matrix_[i * classes_ + j]) / (1 + step);
          p[j] /= 1 + step;
        }
      }
    }
  }

  // Qp, and p'Qp.
  float multiply(const float* p) {
    float total = 0;
    for (size_t i = 0; i < classes_; ++i) {
      float sum = 0;
      for (size_t j = 0; j < classes_; ++j) sum += matrix_[i * classes_ + j] * p[j];
      product_[i] = sum;
      total += p[i] * sum;
    }
    return total;
  }

  const TensorIndex x_, y_;
  const int64_t rows_;
  const size_t classes_;
  std::vector<float> matrix_, product_;
};

}  // namespace

Result<bool> lower_pair_coupling(const Node& node, GraphLowering& lowering) {
  FOLIOT_RETURN_IF_ERROR(require_float32(node, lowering));
  FOLIOT_RETURN_IF_ERROR(lowering.emit_dense(node, "foliot:pair_coupling"));
  return true;
}

Result<std::unique_ptr<Kernel>> make_pair_coupling(const OperatorView& view) {
  return std::unique_ptr<Kernel>(std::make_unique<PairCouplingKernel>(view));
}

}  // namespace foliot
