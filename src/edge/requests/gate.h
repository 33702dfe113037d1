// Gate: admits or refuses a call by its key, and finds the tenant whose limits apply to
// it (answer/inference/tenant.h). Without a key ring every call is admitted.
//
// Threading: any thread.
#ifndef FOLIOT_EDGE_REQUESTS_GATE_H_
#define FOLIOT_EDGE_REQUESTS_GATE_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "answer/inference/call_error.h"
#include "answer/inference/tenant.h"
#include "foundation/access/key_ring.h"
#include "foundation/base/mutex.h"

namespace foliot {

// One line for the log, of a refused call: caller, address, method and reason, and
// never the key. Called from any thread; must not block.
using DenialLog = std::function<void(const std::string&)>;

class Gate {
 public:
  // `keys` null: open.
  Gate(std::shared_ptr<const KeyRing> keys, DenialLog log);

  bool open() const { return open_; }
  // Instead of those before. A tenant that is in both goes on as it is, but for its
  // limits. REQUIRES: !open().
  void use_keys(std::shared_ptr<const KeyRing> keys);
  // `authorization` is the header of that name, "Bearer KEY". Returns why the call is
  // refused, or nothing. `peer` and `what` are for the log.
  std::optional<CallError> turn_away(std::string_view authorization, Scope scope, std::string_view peer,
                                     std::string_view what) const;
  // Whether it is a key of this scope, or no key is needed. Nothing is logged.
  bool permits(std::string_view authorization, Scope scope) const;
  // The owner of the key of this name, which calls are made for that no client makes; null, if it is empty or no key is
  // needed. Errors: kNotFound, if there is no such key any more.
  Result<std::shared_ptr<Tenant>> tenant_named(std::string_view name) const;
  // The owner of this key; null: none.
  std::shared_ptr<Tenant> tenant_of(std::string_view authorization) const;
  // One for each key.
  std::vector<TenantStatistics> tenants() const;

 private:
  // What belongs together while calls are let in.
  struct Keys {
    std::shared_ptr<const KeyRing> ring;
    std::map<std::string, std::shared_ptr<Tenant>, std::less<>> tenants;
  };
  std::shared_ptr<const Keys> keys() const;

  const bool open_;
  const DenialLog log_;
  mutable Mutex mutex_;
  std::shared_ptr<const Keys> keys_ GUARDED_BY(mutex_);
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_REQUESTS_GATE_H_
