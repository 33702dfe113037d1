// FairShare: shares of the devices' time under overload, one for each tenant by its
// weight. What a tenant asks for within its share is always admitted. What some leave
// of theirs goes to those that ask for more: a request beyond its tenant's share is
// admitted as long as what waits already leaves all others time enough, and refused
// otherwise. A tenant that is alone is never refused, so a policy has all to choose
// from.
//
// How much is within a share: the devices' time is divided by max-min fairness, with
// weights, among what the tenants have lately asked for (water-filling: Bertsekas and
// Gallager, Data Networks, section 6.5.2); each tenant then has a bucket that fills at
// its rate (the generic cell rate algorithm, ITU-T I.371), and what it cannot pay for is
// beyond its share. Time is taken from measured EXECs, and LOADs, not from counts of
// requests: a tenant of large models has no more than one of small ones. As in
// core-stateless fair queueing (Stoica, Shenker and Zhang, SIGCOMM 1998) there is a
// decision on arrival and no queue for each tenant, so it works before any policy.
//
// A request brings tenant and weight with it, so that front ends need not agree on
// anything but their keys. The last weight counts. 256 tenants have shares of their
// own, the rest one between them; a tenant that has asked for nothing for a minute is
// forgotten. Until the first request that names a tenant nothing is done at all.
//
// Costs a request some ten additions; ten times a second one sorts the tenants.
//
// Threading: not thread-safe; one owner.
#ifndef FOLIOT_CONTROL_CONTROLLER_FAIR_SHARE_H_
#define FOLIOT_CONTROL_CONTROLLER_FAIR_SHARE_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "control/controller/backlog.h"
#include "control/controller/cluster.h"
#include "foundation/base/flat_map.h"
#include "foundation/base/time.h"
#include "foundation/core/request.h"

namespace foliot {

class FairShare {
 public:
  static constexpr uint32_t kTenantsMax = 256;

  // `cluster` outlives this.
  explicit FairShare(const Cluster& cluster) : cluster_(cluster), backlog_(cluster) {}

  void on_model_added(const ModelInfo& model) { backlog_.on_model_added(model); }
  // After on_taken() of its rows.
  void on_sent(const Action& action) {
    if (used_) backlog_.on_sent(action);
  }
  void on_exec(const Action& action, Duration exec) { backlog_.on_exec(action, exec); }

  // A request of a model that exists has come. nullopt: it is let in. Else it is to be
  // refused, and this is when it could be answered if it were not.
  std::optional<TimePoint> turn_away(const Request& request, TimePoint now);

  // A request waits from now on. Returns the argument of on_taken().
  Duration on_waiting(const Request& request);
  // It waits no longer. `work`: what on_waiting() returned.
  void on_taken(const Request& request, Duration work);

 private:
  struct Tenant {
    TenantId id;
    uint32_t weight = 1;
    TimePoint seen;
    Duration asked;   // since the last look
    double rate = 0;  // of what it asks for: seconds of devices per second
    TimePoint paid_until;
  };

  Tenant& tenant_of(const Request& request);
  bool within_share(Tenant& tenant, Duration cost, TimePoint now) const;
  void look(TimePoint now);
  void forget_idle(TimePoint now);
  // The rate of one unit of weight that gives away `devices` in all; infinite if no
  // tenant asks for more than there is.
  double fair_level(double devices) const;

  const Cluster& cluster_;
  Backlog backlog_;
  bool used_ = false;  // some tenant has come
  std::vector<Tenant> tenants_;
  FlatMap<TenantId, uint32_t> places_;  // in tenants_
  double level_ = std::numeric_limits<double>::infinity();
  uint32_t devices_ = 0;  // that are up
  TimePoint looked_;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_FAIR_SHARE_H_
