#include "edge/requests/gate.h"

#include <fmt/format.h>

#include <boost/beast/core/string.hpp>
#include <utility>

#include "foundation/base/check.h"

namespace foliot {
namespace {

constexpr std::string_view kBearer = "Bearer ";
// Of what a peer sent, in the log.
constexpr size_t kShownMax = 200;

CallError denial(unsigned http_status, GrpcCode grpc_code, std::string message) {
  return {.http_status = http_status,
          .grpc_code = grpc_code,
          .message = std::move(message),
          .reason = {},
          .earliest_completion = {},
          .retry_after = {}};
}

// Printable ASCII, so that bytes of a client cannot begin a line of the log.
std::string shown(std::string_view text) {
  std::string shown(text.substr(0, kShownMax));
  for (char& c : shown) {
    if (c < ' ' || c > '~') c = '?';
  }
  return shown;
}

std::string_view key_in(std::string_view authorization) {
  const bool bearer = authorization.size() > kBearer.size() &&
                      boost::beast::iequals({authorization.data(), kBearer.size()}, {kBearer.data(), kBearer.size()});
  return bearer ? authorization.substr(kBearer.size()) : std::string_view();
}

}  // namespace

Gate::Gate(std::shared_ptr<const KeyRing> keys, DenialLog log) : open_(keys == nullptr), log_(std::move(log)) {
  if (!open_) use_keys(std::move(keys));
}

void Gate::use_keys(std::shared_ptr<const KeyRing> ring) {
  FOLIOT_CHECK(!open_ && ring != nullptr);
  const std::shared_ptr<const Keys> before = keys();
  auto now = std::make_shared<Keys>();
  for (const KeyRing::Entry& entry : ring->entries()) {
    std::shared_ptr<Tenant>& tenant = now->tenants[entry.name];
    if (before && before->tenants.contains(entry.name)) tenant = before->tenants.at(entry.name);
    if (!tenant) tenant = std::make_shared<Tenant>(entry.name);
    tenant->set_limits(entry.limits);
  }
  now->ring = std::move(ring);
  MutexLock lock(mutex_);
  keys_ = std::move(now);
}

std::shared_ptr<const Gate::Keys> Gate::keys() const {
  MutexLock lock(mutex_);
  return keys_;
}

std::shared_ptr<Tenant> Gate::tenant_of(std::string_view authorization) const {
  if (open_) return nullptr;
  const auto current = keys();
  const auto found = current->tenants.find(current->ring->decide(key_in(authorization), Scope::kInfer).name);
  return found == current->tenants.end() ? nullptr : found->second;
}

Result<std::shared_ptr<Tenant>> Gate::tenant_named(std::string_view name) const {
  if (open_ || name.empty()) return std::shared_ptr<Tenant>();
  const auto current = keys();
  const auto found = current->tenants.find(name);
  if (found != current->tenants.end()) return found->second;
  return Status::not_found(fmt::format("the key '{}' is not in the keys file any more", name));
}

bool Gate::permits(std::string_view authorization, Scope scope) const {
  return open_ || keys()->ring->decide(key_in(authorization), scope).verdict == KeyRing::Verdict::kGranted;
}

std::vector<TenantStatistics> Gate::tenants() const {
  std::vector<TenantStatistics> statistics;
  if (open_) return statistics;
  for (const auto& [name, tenant] : keys()->tenants) statistics.push_back(tenant->statistics());
  return statistics;
}

std::optional<CallError> Gate::turn_away(std::string_view authorization, Scope scope, std::string_view peer,
                                         std::string_view what) const {
  if (open()) return std::nullopt;
  const auto log = [&](std::string_view caller, std::string_view why) {
    log_(fmt::format("refused {} of {} from {}: {}", shown(what), caller, peer, why));
  };
  const std::string_view key = key_in(authorization);
  if (key.empty()) {
    log("a caller without a key", "a key is needed");
    return denial(401, GrpcCode::kUnauthenticated, "a key is needed: send the header 'Authorization: Bearer KEY'");
  }
  const std::shared_ptr<const Keys> current = keys();
  const KeyRing::Decision decision = current->ring->decide(key, scope);
  switch (decision.verdict) {
    case KeyRing::Verdict::kGranted: return std::nullopt;
    case KeyRing::Verdict::kUnknownKey:
      log("a caller with an unknown key", "the key is not in the keys file");
      return denial(401, GrpcCode::kUnauthenticated, "the key is not known");
    case KeyRing::Verdict::kWrongScope: break;
  }
  const std::string why = fmt::format("the key has no scope '{}'", to_string(scope));
  log(fmt::format("key '{}'", decision.name), why);
  return denial(403, GrpcCode::kPermissionDenied, why);
}

}  // namespace foliot
