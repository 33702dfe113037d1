// SimulatedUserStore: values in memory. Without faults it is the fake of UserStore; with them, one whose disk is full,
// cannot be read or damages values, by a seed.
//
// crash() loses what was not flushed in part: the first of the writes since then stay, any number of them.
//
// Threading: as UserStore; crash() and what follows while no other thread uses it.
#ifndef FOLIOT_FOUNDATION_STORE_SIMULATED_USER_STORE_H_
#define FOLIOT_FOUNDATION_STORE_SIMULATED_USER_STORE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "foundation/base/mutex.h"
#include "foundation/base/random.h"
#include "foundation/store/user_store.h"

namespace foliot {

class SimulatedUserStore : public UserStore {
 public:
  struct Faults {
    double failed_read = 0;   // probability, for get() and scan(): an error
    double failed_write = 0;  // for what changes something
    double disk_full = 0;     // for a write: it fails, and so do the next few
  };

  SimulatedUserStore(uint64_t seed, const Faults& faults) : random_(seed), faults_(faults) {}
  SimulatedUserStore() : SimulatedUserStore(0, Faults{}) {}

  Result<std::optional<Bytes>> get(uint64_t user) override;
  Status write(std::span<const Write> writes) override;
  Result<std::vector<Value>> scan(std::optional<uint64_t> after, size_t bytes_max) override;
  Status flush() override;
  Status purge(std::span<const uint64_t> users) override;
  Status clear() override;
  Result<std::optional<Bytes>> note() override;
  Status set_note(std::optional<Bytes> note) override;

  void crash();
  void set_faults(const Faults& faults) {
    const MutexLock lock(mutex_);
    faults_ = faults;
    writes_until_space_ = 0;
  }
  // The value cannot be read any more, as one whose checksum is wrong, until it is written anew.
  void damage(uint64_t user) {
    const MutexLock lock(mutex_);
    damaged_.insert(user);
  }
  bool has(uint64_t user) const {
    const MutexLock lock(mutex_);
    return now_.values.contains(user);
  }
  // Also what was replaced or erased and not purged yet.
  bool is_in_files(uint64_t user) const {
    const MutexLock lock(mutex_);
    return now_.values.contains(user) || left_.contains(user);
  }
  size_t values() const {
    const MutexLock lock(mutex_);
    return now_.values.size();
  }
  uint64_t reads() const {
    const MutexLock lock(mutex_);
    return reads_;
  }

 private:
  struct State {
    std::map<uint64_t, Bytes> values{};
    std::optional<Bytes> note{};
  };
  struct Unflushed {
    std::vector<Write> writes{};
    std::optional<std::optional<Bytes>> note{};
  };
  bool drawn(double probability) REQUIRES(mutex_) { return probability > 0 && random_.uniform() < probability; }
  Status begin_write() REQUIRES(mutex_);
  static void apply(const Unflushed& change, State& state);
  void add(Unflushed change) REQUIRES(mutex_);

  mutable Mutex mutex_;
  Random random_ GUARDED_BY(mutex_);
  Faults faults_ GUARDED_BY(mutex_);
  uint64_t writes_until_space_ GUARDED_BY(mutex_) = 0;
  uint64_t reads_ GUARDED_BY(mutex_) = 0;
  State now_ GUARDED_BY(mutex_);
  State flushed_ GUARDED_BY(mutex_);
  std::vector<Unflushed> unflushed_ GUARDED_BY(mutex_);
  std::set<uint64_t> left_ GUARDED_BY(mutex_);  // users whose erased values are in files
  std::set<uint64_t> damaged_ GUARDED_BY(mutex_);
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_STORE_SIMULATED_USER_STORE_H_
