// BatchInputs: what the rows of an INFER still wait for before a worker can compute it, and
// where each of it comes from: from the call, at its front end, or from a device that holds what
// an earlier request or an earlier visit of the same run computed.
//
// A row waits until it has something from each of its sources (a visit may have none), is dropped, since its client is
// gone, or is starved, since a source does not have its inputs. The batch can be computed once no row
// waits; what was dropped or starved is then computed on whatever lies in its place.
//
// Threading: not thread-safe; one owner.
#ifndef FOLIOT_CLUSTER_SESSIONS_BATCH_INPUTS_H_
#define FOLIOT_CLUSTER_SESSIONS_BATCH_INPUTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "foundation/core/action.h"
#include "foundation/core/ids.h"
#include "foundation/core/visit_order.h"

namespace foliot {

struct InputSource {
  std::optional<DeviceId> holder{};  // none: the front end of the call
  std::optional<uint32_t> slot{};    // of the visit whose outputs they are; none: the call's, or an earlier request's
  PayloadHandle payload{};           // where they are; none of a visit
  std::vector<uint32_t> inputs{};    // their positions among the model's inputs; empty: all
  std::vector<TensorPart> places{};  // what of these inputs they are
  std::vector<uint32_t> tensors{};   // their positions at the source; empty: all
  std::vector<TensorPart> taken{};   // what of these tensors is taken; empty: all of them

  // As FETCH and INPUTS name it. No two sources of a row have the same.
  uint32_t number() const { return slot ? *slot + 1 : 0; }
};

class BatchInputs {
 public:
  // Of no rows.
  BatchInputs() = default;
  // All rows with sources wait. `visits`: those that are visits of stages, by row.
  BatchInputs(const BatchRows& rows, const std::map<uint32_t, VisitOrder>& visits);

  bool complete() const { return waiting_.none(); }
  bool waits(uint32_t row) const { return waiting_[row]; }
  // What the row waits for. REQUIRES: it waits.
  const std::vector<InputSource>& sources(uint32_t row) const { return sources_[row]; }
  // Of these the one with this number; nullptr: there is none, any more.
  const InputSource* find(uint32_t row, uint32_t number) const;

  // The row has what the source of this number had.
  void receive(uint32_t row, uint32_t number);
  void drop(uint32_t row);
  void starve(uint32_t row, std::string reason);

  bool is_dropped(uint32_t row) const { return dropped_[row]; }
  size_t dropped_count() const { return dropped_.count(); }
  // Why it was starved; nullptr: it was not.
  const std::string* starved(uint32_t row) const;

 private:
  void end_wait(uint32_t row);

  RowSet waiting_;
  RowSet dropped_;
  std::map<uint32_t, std::string> starved_;
  std::vector<std::vector<InputSource>> sources_;  // by row
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_SESSIONS_BATCH_INPUTS_H_
