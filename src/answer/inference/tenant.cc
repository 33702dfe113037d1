#include "answer/inference/tenant.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace foliot {
namespace {

constexpr Duration kRetryAfterInFlight = Duration::seconds(1);

CallError over_limit(std::string message, Duration retry_after) {
  return {.http_status = 429,
          .grpc_code = GrpcCode::kResourceExhausted,
          .message = std::move(message),
          .reason = "quota",
          .earliest_completion = {},
          .retry_after = retry_after};
}

}  // namespace

static_assert(KeyLimits::kWeightMax <= kTenantWeightMax);

Tenant::Tenant(std::string name, const KeyLimits& limits) : id_(tenant_named(name)), limits_(limits) {
  statistics_.name = std::move(name);
  statistics_.id = id_;
}

uint32_t Tenant::weight() const {
  MutexLock lock(mutex_);
  return limits_.weight;
}

void Tenant::set_limits(const KeyLimits& limits) {
  MutexLock lock(mutex_);
  limits_ = limits;
}

std::optional<CallError> Tenant::enter(uint32_t requests, TimePoint now) {
  MutexLock lock(mutex_);
  if (limits_.requests_in_flight && statistics_.in_flight + requests > *limits_.requests_in_flight) {
    statistics_.over_in_flight += requests;
    return over_limit(fmt::format("the key may have {} requests in flight; {} are, and this call has {}",
                                  *limits_.requests_in_flight, statistics_.in_flight, requests),
                      kRetryAfterInFlight);
  }
  if (limits_.requests_per_second) {
    const double rate = *limits_.requests_per_second;
    const double most = std::max(rate, 1.0);
    const double since = allowance_ ? (now - allowance_at_).to_seconds() * rate : 0;
    const double allowance = std::min(most, allowance_.value_or(most) + since);
    if (allowance < 1) {
      statistics_.over_rate += requests;
      return over_limit(fmt::format("the key may make {} requests per second", rate),
                        Duration::from_seconds((1 - allowance) / rate));
    }
    allowance_ = allowance - requests;
    allowance_at_ = now;
  }
  statistics_.admitted += requests;
  statistics_.in_flight += requests;
  return std::nullopt;
}

void Tenant::leave(uint32_t requests) {
  MutexLock lock(mutex_);
  statistics_.in_flight -= requests;
}

void Tenant::count(Refusal refusal) {
  MutexLock lock(mutex_);
  switch (refusal) {
    case Refusal::kNone: ++statistics_.served; break;
    case Refusal::kOverShare: ++statistics_.over_share; break;
    default: ++statistics_.missed; break;
  }
}

TenantStatistics Tenant::statistics() const {
  MutexLock lock(mutex_);
  return statistics_;
}

}  // namespace foliot
