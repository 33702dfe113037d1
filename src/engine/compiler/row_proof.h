// Row proof: proves from the graphs of several batch sizes that each row of a
// batch is computed as if it were alone.
//
// Abstract interpretation: of each value it follows along which dimension the
// rows lie, and what one row of it is as a term of the row's inputs. Operators
// that take one row with another, and those that it has no rule for, leave a
// value of which nothing is known. The proof holds where every output has rows
// in its first dimension, and where their terms are the same for all batch
// sizes. Running a model on data cannot show that: rows may meet only where a
// value is large, or a mask is full.
//
// Not provable does not mean dependent. It is an error that names the operator.
#ifndef FOLIOT_ENGINE_COMPILER_ROW_PROOF_H_
#define FOLIOT_ENGINE_COMPILER_ROW_PROOF_H_

#include <string>
#include <vector>

#include "engine/compiler/constant.h"
#include "engine/compiler/row_terms.h"
#include "engine/device/graph.h"

namespace foliot {

// Threading: one thread.
class RowProof {
 public:
  // `pool` interned the constants of all graphs, and outlives this.
  explicit RowProof(ConstantPool& pool) : terms_(pool) {}

  // Adds the graph of one batch size: as translate() makes it, before any pass,
  // with graph.batch_size set. Returns why its rows are not those of the graphs
  // before; empty: they are.
  std::string add(const Graph& graph);

 private:
  RowTerms terms_;
  uint32_t first_size_ = 0;         // of the first graph; 0: there is none
  std::vector<TermIndex> outputs_;  // its rows
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_ROW_PROOF_H_
