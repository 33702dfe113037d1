// LeaderRecord: the one record by which controllers agree which of them leads, as a store keeps it.
//
// Its text is JSON, so that an operator can read it:
// {"address":"a:8100","epoch":7,"instance":"93","renewal":41,"serves":true}.
#ifndef FOLIOT_CLUSTER_ELECTION_LEADER_RECORD_H_
#define FOLIOT_CLUSTER_ELECTION_LEADER_RECORD_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "foundation/base/status.h"

namespace foliot {

// Epochs beyond that are no epochs; so the next one always exists.
inline constexpr uint64_t kEpochMax = uint64_t{1} << 62;

struct LeaderRecord {
  std::string address;    // HOST:PORT, as it was advertised; empty: the leader has resigned
  uint64_t epoch = 0;     // from 1 on; each leader has a higher one than those before
  uint64_t renewal = 0;   // grows while it leads
  uint64_t instance = 0;  // of the process, drawn when it begins: two may advertise one address
  bool serves = true;     // it has workers

  bool operator==(const LeaderRecord&) const = default;
  std::string text() const;
  // Errors: kInvalidArgument quoting the beginning of what it is instead.
  static Result<LeaderRecord> parse(std::string_view text);
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_ELECTION_LEADER_RECORD_H_
