// Tenant: the owner of one key, with the limits of that key. A request is a row, as
// everywhere behind the front end. These limits hold at all times; the controller
// decides a tenant's share under overload by the weight of its requests
// (foundation/core/request.h).
//
// What the rate leaves unused is kept for up to a second. A call of several rows is
// admitted while anything of it is left, and pays for all of them afterwards; so no
// call is too large for a rate.
//
// Threading: any thread.
#ifndef FOLIOT_ANSWER_INFERENCE_TENANT_H_
#define FOLIOT_ANSWER_INFERENCE_TENANT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "answer/inference/call_error.h"
#include "foundation/access/key_ring.h"
#include "foundation/base/mutex.h"
#include "foundation/base/time.h"
#include "foundation/core/request.h"

namespace foliot {

// Of requests.
struct TenantStatistics {
  std::string name;
  TenantId id{};  // 0: of several keys
  uint64_t admitted = 0;
  uint64_t over_rate = 0;
  uint64_t over_in_flight = 0;
  // The results of requests that reached the controller.
  uint64_t served = 0;
  uint64_t over_share = 0;
  uint64_t missed = 0;  // for other reasons
  uint64_t in_flight = 0;
};

class Tenant {
 public:
  explicit Tenant(std::string name, const KeyLimits& limits = {});

  TenantId id() const { return id_; }
  uint32_t weight() const;

  void set_limits(const KeyLimits& limits);
  // Admits a call, whose requests are in flight until leave(); or returns the reason:
  // 429.
  std::optional<CallError> enter(uint32_t requests, TimePoint now);
  void leave(uint32_t requests);
  // The result of a request that reached the controller.
  void count(Refusal refusal);
  TenantStatistics statistics() const;

 private:
  const TenantId id_;
  mutable Mutex mutex_;
  KeyLimits limits_ GUARDED_BY(mutex_);
  std::optional<double> allowance_ GUARDED_BY(mutex_);  // of requests, as of then; nullopt: all of a second's
  TimePoint allowance_at_ GUARDED_BY(mutex_);
  TenantStatistics statistics_ GUARDED_BY(mutex_);
};

// Leaves when it is destroyed.
class TenantLease {
 public:
  TenantLease() = default;
  TenantLease(std::shared_ptr<Tenant> tenant, uint32_t requests) : tenant_(std::move(tenant)), requests_(requests) {}
  TenantLease(TenantLease&& other) noexcept : tenant_(std::move(other.tenant_)), requests_(other.requests_) {}
  TenantLease& operator=(TenantLease&&) = delete;
  ~TenantLease() {
    if (tenant_) tenant_->leave(requests_);
  }

  // nullptr: without a key.
  Tenant* tenant() const { return tenant_.get(); }

 private:
  std::shared_ptr<Tenant> tenant_;
  uint32_t requests_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_INFERENCE_TENANT_H_
