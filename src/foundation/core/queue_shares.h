// QueueShares: the rule by which requests wait in a bounded queue, and by which one is
// evicted to make room for another.
//
// Classes share a queue (RequestClass), and so do tenants (API keys; requests without one
// are one tenant). Requests with a deadline may have all but an eighth of it. Best effort
// and offline may have what these leave, and a sixteenth is each one's own. Where there is
// no room, a class that has more than its own is evicted from, offline first. Of that class the
// tenant that has the most of it, by weight, gives up its least urgent request: the latest
// deadline, of equals the last to arrive. A request that would be the least urgent of its
// own tenant's is turned down itself. So no urgent request is evicted for a less urgent
// one of the same tenant, and none with a deadline for one without.
//
// Amounts are rows, and bytes where the owner counts them. To add and to remove cost a
// few additions and, amortized, two questions whether a request still waits; an eviction
// costs the logarithm of what waits.
//
// Threading: not thread-safe; one owner.
#ifndef FOLIOT_FOUNDATION_CORE_QUEUE_SHARES_H_
#define FOLIOT_FOUNDATION_CORE_QUEUE_SHARES_H_

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "foundation/base/flat_map.h"
#include "foundation/base/time.h"
#include "foundation/core/ids.h"

namespace foliot {

class QueueShares {
 public:
  struct Amount {
    uint64_t rows = 0;
    uint64_t bytes = 0;
  };
  // One request or call that waits or is to wait.
  struct Entry {
    // The owner's name for it, its place in the order of arrival, and how often it was
    // added before: together they are never added twice.
    uint64_t id = 0;
    uint64_t sequence = 0;
    uint32_t attempt = 0;
    Amount amount{1, 0};
    TimePoint arrival;
    TimePoint deadline = TimePoint::infinite_future();
    TenantId tenant;
    uint32_t weight = 1;  // of its tenant
    bool offline = false;
  };
  // Whether an entry that was added has neither been removed nor evicted.
  using Waits = std::function<bool(const Entry&)>;

  // `limit`: of all that waits.
  QueueShares(Amount limit, Waits waits);

  // Adds the entry if there is room, or if others can be evicted for it, which are
  // appended to `evicted`: they are removed already, and `waits` must deny them from now
  // on. False: nothing has changed.
  bool admit(const Entry& entry, std::vector<Entry>& evicted);
  // Adds it, whether or not there is room: it waits again.
  void add(const Entry& entry);
  void remove(const Entry& entry);

  // What waits in all.
  Amount amount() const;

 private:
  enum Class : uint8_t { kDeadline, kBestEffort, kOffline };
  static constexpr size_t kClasses = 3;
  enum Resource : uint8_t { kRows, kBytes };
  static constexpr size_t kResources = 2;
  using Amounts = std::array<uint64_t, kResources>;

  // The entries of one tenant and class, and what has been removed since it was looked at.
  struct Waiting {
    Amounts amount{};
    std::vector<Entry> entries;  // the first `heaped` are a heap, the least urgent on top
    size_t heaped = 0;
  };
  struct Tenant {
    TenantId id;
    uint32_t weight = 1;
    std::array<Waiting, kClasses> waiting;
  };
  // What an entry finds too little of, and the class that has to give it up.
  struct Shortage {
    Class of = kDeadline;
    Resource resource = kRows;
  };

  static Class class_of(const Entry& entry) {
    return entry.offline ? kOffline : entry.deadline.is_infinite() ? kBestEffort : kDeadline;
  }
  static Amounts amounts_of(const Entry& entry) { return {entry.amount.rows, entry.amount.bytes}; }
  Tenant& tenant_of(const Entry& entry);
  void forget_idle_tenants();
  std::optional<Shortage> shortage(const Entry& entry) const;
  // The tenant that has the most of it by weight, if the entry were admitted.
  Tenant& heaviest(const Shortage& shortage, const Entry& entry);
  // The least urgent entry that waits; nullptr if none does.
  const Entry* laxest(Waiting& waiting);
  void count(Waiting& waiting, Class of, const Entry& entry);
  void discount(Waiting& waiting, Class of, const Entry& entry);
  void compact(Waiting& waiting);

  const Amounts limit_;
  const Waits waits_;
  std::vector<Tenant> tenants_;
  FlatMap<TenantId, uint32_t> places_;  // in tenants_
  std::array<Amounts, kClasses> total_{};
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_QUEUE_SHARES_H_
