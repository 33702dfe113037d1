#include "control/controller/fair_share.h"

#include <algorithm>

namespace foliot {
namespace {

constexpr Duration kRatesInterval = Duration::milliseconds(100);
// What a tenant asks for is averaged over so long.
constexpr Duration kMemory = Duration::milliseconds(500);
constexpr Duration kIdleMax = Duration::seconds(60);
// Of the devices' time; the rest is for what was thought to take less than it did.
constexpr double kDivided = 0.9;
// So much of its share may a tenant take at once.
constexpr Duration kBurst = Duration::milliseconds(100);
// What is beyond a share may wait behind this part of what would make it late; without
// a deadline, as if it had that one. More leaves too little to others, whose deadlines
// may be tighter; less refuses what could be met.
constexpr double kRoom = 1.0 / 3;
constexpr Duration kBestEffortWaitMax = Duration::seconds(1);

}  // namespace

std::optional<TimePoint> FairShare::turn_away(const Request& request, TimePoint now) {
  if (!used_ && request.tenant == TenantId()) return std::nullopt;
  used_ = true;
  if (now - looked_ >= kRatesInterval) look(now);
  Tenant& tenant = tenant_of(request);
  tenant.weight = request.tenant_weight;
  tenant.seen = now;
  backlog_.on_arrival(request, now);
  const Duration cost = backlog_.cost(request);
  tenant.asked += cost;
  if (tenants_.size() == 1 || within_share(tenant, cost, now)) return std::nullopt;
  const Duration before = backlog_.before(request.model, devices_);
  const Duration patience =
      request.best_effort() ? kBestEffortWaitMax : request.deadline - now - cluster_.least_margin();
  if (before <= patience.scaled(kRoom)) return std::nullopt;
  return now + before + cluster_.least_margin();
}

FairShare::Tenant& FairShare::tenant_of(const Request& request) {
  const TenantId none;
  const bool crowded = tenants_.size() >= kTenantsMax && places_.find(request.tenant) == nullptr;
  const TenantId id = crowded ? none : request.tenant;
  if (places_.insert(id, static_cast<uint32_t>(tenants_.size()))) tenants_.push_back({.id = id});
  return tenants_[*places_.find(id)];
}

bool FairShare::within_share(Tenant& tenant, Duration cost, TimePoint now) const {
  const double rate = level_ * tenant.weight;
  if (rate <= 0 || tenant.paid_until > now + kBurst) return false;
  tenant.paid_until = std::max(tenant.paid_until, now) + cost.scaled(1 / rate);
  return true;
}

void FairShare::look(TimePoint now) {
  const Duration elapsed = now - looked_;
  const double gain = std::min(1.0, elapsed.to_seconds() / kMemory.to_seconds());
  for (Tenant& tenant : tenants_) {
    tenant.rate += (tenant.asked.to_seconds() / elapsed.to_seconds() - tenant.rate) * gain;
    tenant.asked = Duration();
  }
  forget_idle(now);
  devices_ = static_cast<uint32_t>(
      std::count_if(cluster_.devices.begin(), cluster_.devices.end(), [](const DeviceModel& d) { return d.up(); }));
  level_ = fair_level(kDivided * devices_);
  looked_ = now;
}

void FairShare::forget_idle(TimePoint now) {
  if (std::erase_if(tenants_, [&](const Tenant& tenant) { return now - tenant.seen > kIdleMax; }) == 0) return;
  places_.clear();
  for (uint32_t i = 0; i < tenants_.size(); ++i) places_.insert(tenants_[i].id, i);
}

double FairShare::fair_level(double devices) const {
  std::vector<const Tenant*> modest_first;
  double weights = 0;
  for (const Tenant& tenant : tenants_) {
    modest_first.push_back(&tenant);
    weights += tenant.weight;
  }
  std::stable_sort(modest_first.begin(), modest_first.end(),
                   [](const Tenant* a, const Tenant* b) { return a->rate / a->weight < b->rate / b->weight; });
  for (const Tenant* tenant : modest_first) {
    if (tenant->rate * weights > devices * tenant->weight) return devices / weights;
    devices -= tenant->rate;
    weights -= tenant->weight;
  }
  return std::numeric_limits<double>::infinity();
}

// ---- What waits ----

Duration FairShare::on_waiting(const Request& request) {
  if (!used_) return Duration();
  return backlog_.add(request);
}

void FairShare::on_taken(const Request& request, Duration work) {
  if (work > Duration()) backlog_.remove(request, work);
}

}  // namespace foliot
