#include "foundation/core/queue_shares.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "foundation/base/check.h"

namespace foliot {
namespace {

// This part of the queue is kept from requests with a deadline; half of it is best
// effort's own, half offline's.
constexpr uint64_t kKeptPart = 8;
constexpr uint64_t kOfflinePart = 16;
// Of more tenants than this, those of which nothing waits are forgotten.
constexpr size_t kTenantsKept = 256;
// So many entries that were removed are kept before a list is looked through.
constexpr size_t kRemovedMin = 64;

bool urgent(const QueueShares::Entry& a, const QueueShares::Entry& b) {
  return std::tie(a.deadline, a.arrival, a.sequence) < std::tie(b.deadline, b.arrival, b.sequence);
}

}  // namespace

QueueShares::QueueShares(Amount limit, Waits waits) : limit_{limit.rows, limit.bytes}, waits_(std::move(waits)) {}

bool QueueShares::admit(const Entry& entry, std::vector<Entry>& evicted) {
  const size_t evicted_before = evicted.size();
  while (const std::optional<Shortage> shortage = this->shortage(entry)) {
    Tenant& tenant = heaviest(*shortage, entry);
    Waiting& waiting = tenant.waiting[shortage->of];
    const Entry* last = laxest(waiting);
    const bool own = tenant.id == entry.tenant && shortage->of == class_of(entry);
    if (last == nullptr || (own && !urgent(entry, *last))) {
      for (size_t i = evicted_before; i < evicted.size(); ++i) add(evicted[i]);
      evicted.resize(evicted_before);
      return false;
    }
    evicted.push_back(*last);
    discount(waiting, shortage->of, *last);
    std::pop_heap(waiting.entries.begin(), waiting.entries.end(), urgent);
    waiting.entries.pop_back();
    --waiting.heaped;
  }
  add(entry);
  return true;
}

void QueueShares::add(const Entry& entry) {
  Tenant& tenant = tenant_of(entry);
  tenant.weight = entry.weight;
  Waiting& waiting = tenant.waiting[class_of(entry)];
  waiting.entries.push_back(entry);
  count(waiting, class_of(entry), entry);
}

void QueueShares::remove(const Entry& entry) {
  Waiting& waiting = tenant_of(entry).waiting[class_of(entry)];
  discount(waiting, class_of(entry), entry);
  if (waiting.entries.size() > 2 * waiting.amount[kRows] + kRemovedMin) compact(waiting);
}

QueueShares::Amount QueueShares::amount() const {
  Amount all{0, 0};
  for (const Amounts& of_class : total_) {
    all.rows += of_class[kRows];
    all.bytes += of_class[kBytes];
  }
  return all;
}

void QueueShares::count(Waiting& waiting, Class of, const Entry& entry) {
  const Amounts amounts = amounts_of(entry);
  for (size_t resource = 0; resource < kResources; ++resource) {
    waiting.amount[resource] += amounts[resource];
    total_[of][resource] += amounts[resource];
  }
}

void QueueShares::discount(Waiting& waiting, Class of, const Entry& entry) {
  const Amounts amounts = amounts_of(entry);
  for (size_t resource = 0; resource < kResources; ++resource) {
    FOLIOT_CHECK(waiting.amount[resource] >= amounts[resource]);
    waiting.amount[resource] -= amounts[resource];
    total_[of][resource] -= amounts[resource];
  }
}

std::optional<QueueShares::Shortage> QueueShares::shortage(const Entry& entry) const {
  const Class own = class_of(entry);
  const Amounts amounts = amounts_of(entry);
  for (const Resource resource : {kRows, kBytes}) {
    const uint64_t kept = limit_[resource] / kKeptPart;
    if (own == kDeadline && total_[kDeadline][resource] + amounts[resource] > limit_[resource] - kept) {
      return Shortage{kDeadline, resource};
    }
    uint64_t wanted = amounts[resource];
    for (const Amounts& of_class : total_) wanted += of_class[resource];
    if (wanted <= limit_[resource]) continue;
    const uint64_t offline = total_[kOffline][resource] + (own == kOffline ? amounts[resource] : 0);
    return Shortage{offline > limit_[resource] / kOfflinePart ? kOffline : kBestEffort, resource};
  }
  return std::nullopt;
}

// ---- Tenants ----

QueueShares::Tenant& QueueShares::tenant_of(const Entry& entry) {
  if (const uint32_t* place = places_.find(entry.tenant)) return tenants_[*place];
  if (tenants_.size() >= kTenantsKept) forget_idle_tenants();
  places_.insert(entry.tenant, static_cast<uint32_t>(tenants_.size()));
  tenants_.push_back({.id = entry.tenant, .waiting = {}});
  return tenants_.back();
}

void QueueShares::forget_idle_tenants() {
  const auto idle = [](const Tenant& tenant) {
    return std::ranges::all_of(tenant.waiting, [](const Waiting& waiting) { return waiting.amount[kRows] == 0; });
  };
  if (std::erase_if(tenants_, idle) == 0) return;
  places_.clear();
  for (uint32_t i = 0; i < tenants_.size(); ++i) places_.insert(tenants_[i].id, i);
}

QueueShares::Tenant& QueueShares::heaviest(const Shortage& shortage, const Entry& entry) {
  tenant_of(entry).weight = entry.weight;
  const uint64_t wanted = class_of(entry) == shortage.of ? amounts_of(entry)[shortage.resource] : 0;
  Tenant* heaviest = nullptr;
  double most = -1;
  for (Tenant& tenant : tenants_) {
    const uint64_t amount =
        tenant.waiting[shortage.of].amount[shortage.resource] + (tenant.id == entry.tenant ? wanted : 0);
    const double weighed = static_cast<double>(amount) / tenant.weight;
    if (weighed <= most) continue;
    most = weighed;
    heaviest = &tenant;
  }
  return *heaviest;
}

// ---- The least urgent ----

const QueueShares::Entry* QueueShares::laxest(Waiting& waiting) {
  std::vector<Entry>& entries = waiting.entries;
  if (entries.size() > 2 * waiting.heaped) {
    std::make_heap(entries.begin(), entries.end(), urgent);
    waiting.heaped = entries.size();
  }
  while (waiting.heaped < entries.size()) {
    ++waiting.heaped;
    std::push_heap(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(waiting.heaped), urgent);
  }
  while (!entries.empty() && !waits_(entries.front())) {
    std::pop_heap(entries.begin(), entries.end(), urgent);
    entries.pop_back();
    --waiting.heaped;
  }
  return entries.empty() ? nullptr : &entries.front();
}

void QueueShares::compact(Waiting& waiting) {
  std::erase_if(waiting.entries, [&](const Entry& entry) { return !waits_(entry); });
  waiting.heaped = 0;
}

}  // namespace foliot
