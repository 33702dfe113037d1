// LeaderStore: keeps one LeaderRecord, which is changed by compare-and-swap alone.
//
// A call that failed may have been made, or be made later. Since each swap names the version that it replaces, one that
// comes late changes nothing.
//
// Threading: one thread at a time. Calls of real stores block for at most their timeout.
#ifndef FOLIOT_CLUSTER_ELECTION_LEADER_STORE_H_
#define FOLIOT_CLUSTER_ELECTION_LEADER_STORE_H_

#include <optional>
#include <string>

#include "cluster/election/leader_record.h"
#include "foundation/base/status.h"

namespace foliot {

struct StoredLeader {
  std::optional<LeaderRecord> record;  // nullopt: there is none
  std::string version;                 // in the store's words; empty: there is none
};

class LeaderStore {
 public:
  virtual ~LeaderStore() = default;

  // Errors of both calls name the store: kInvalidArgument for a record that is none, kUnavailable for all else.
  virtual Result<StoredLeader> read() = 0;
  // Puts `record` in place of what has this version, and returns its version; nullopt: something else is there.
  virtual Result<std::optional<std::string>> swap(const std::string& version, const LeaderRecord& record) = 0;
  // Where the record lies, for people.
  virtual std::string place() const = 0;
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_ELECTION_LEADER_STORE_H_
