// BatchRelaxation: the most that answering each request of a model is worth, at given
// prices of EXEC, if its model is resident whenever it has to be.
//
// A batch of n requests is worth n less the price of its EXEC, at the cheapest instant
// that its first deadline and last arrival leave. Worths w are such that no batch that
// could be run, of whichever requests, is worth more than the w of its requests
// together: the requests of any plan are worth at least what its batches are. So they
// are feasible in the dual of the problem of choosing batches.
//
// A longest path over batches of consecutive requests finds worths that hold for these.
// Other batches are needed in one case only. Take, of the best plans, one in which
// batches that begin earlier have the earlier requests as far as that can be (the sum
// over requests of position times rank of the batch is lowest). Then exchanging two
// requests of two batches, or one for one that is left out, is no longer possible, so
// what a batch skips between its first and its last request is in batches in whose EXEC
// its own is nested: longer ones, which therefore hold more requests than its size. Of
// those that a batch of size b skips, b + 1 or more are neighbours; certify() raises the
// worths that such batches would exceed.
#ifndef FOLIOT_VIRTUAL_BOUNDS_BATCH_RELAXATION_H_
#define FOLIOT_VIRTUAL_BOUNDS_BATCH_RELAXATION_H_

#include <cstdint>
#include <vector>

#include "virtual/bounds/bound_model.h"
#include "virtual/bounds/price_curve.h"
#include "virtual/bounds/start_costs.h"

namespace foliot {

class BatchRelaxation {
 public:
  // `kind` and `prices` outlive it.
  BatchRelaxation(const BoundKind& kind, const PriceCurve& prices);

  // Prices have changed.
  void update();
  // Fills worths(). `requests` is in order and outlives what follows.
  void solve(const std::vector<BoundRequest>& requests);
  // Makes worths() hold for all batches, not only for those of consecutive requests.
  void certify();
  const std::vector<double>& worths() const { return worths_; }
  // Adds the EXEC time of the best batches, each in proportion to how many of its
  // requests are covered.
  void add_use(const std::vector<bool>& covered, std::vector<double>& windows) const;

 private:
  // The last batch of the best plan for the requests up to some one.
  struct Step {
    double value = 0;    // of that plan
    uint32_t count = 0;  // 0: that one is left out
    double start = 0;
  };
  double cost(size_t size, double start) const { return prices_.expected(start, kind_.exec[size]); }
  // Of a batch with `rows` rows and this first and last request.
  StartCosts::Start cheapest(size_t size, uint32_t rows, size_t first, size_t last) const;
  void add_backward();
  bool repair(size_t first, size_t size);
  bool exceeded(size_t first, size_t last, size_t size, std::vector<size_t>& batch) const;
  void extend(size_t first, size_t last, size_t size);

  const BoundKind& kind_;
  const PriceCurve& prices_;
  std::vector<size_t> size_of_rows_;  // position in kind_.sizes
  std::vector<StartCosts> costs_;     // by size
  const std::vector<BoundRequest>* requests_ = nullptr;
  std::vector<Step> steps_;
  std::vector<double> worths_;
  // In repair(), of batches of its first request and others: least_[rows][i]: the least
  // sum of worths of `rows` requests of which the last is the i-th from the first on;
  // least_until_[rows][i]: of which the last is the i-th or one before.
  std::vector<std::vector<double>> least_, least_until_;
  uint32_t repairs_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_BOUNDS_BATCH_RELAXATION_H_
