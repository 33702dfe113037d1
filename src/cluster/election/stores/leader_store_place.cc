#include "cluster/election/stores/leader_store_place.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>
#include <utility>

#include "cluster/election/stores/etcd_leader_store.h"
#include "cluster/election/stores/kubernetes_leader_store.h"
#include "cluster/election/stores/redis_leader_store.h"

namespace foliot {
namespace {

std::string environment(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing sets the environment
  return value == nullptr ? "" : value;
}

Status wrong(const std::string& place, std::string_view why) {
  return Status::invalid_argument(
      fmt::format("'{}' {}; it must be etcd://HOST:PORT[,HOST:PORT...][/KEY] (etcds:// with TLS), "
                  "kubernetes://NAMESPACE/NAME, redis://HOST[:PORT][/DATABASE] or unix:PATH",
                  place, why));
}

Result<std::unique_ptr<LeaderStore>> open_etcd(const std::string& place, std::string_view rest, bool tls,
                                               Duration timeout) {
  EtcdOptions options{.members = {},
                      .user = environment("FOLIOT_ETCD_USER"),
                      .password = environment("FOLIOT_ETCD_PASSWORD"),
                      .ca_file = environment("FOLIOT_ETCD_CA"),
                      .timeout = timeout};
  if (rest.find('@') != rest.npos) {
    return wrong(place, "would show a password to all; set FOLIOT_ETCD_USER and FOLIOT_ETCD_PASSWORD");
  }
  if (const size_t slash = rest.find('/'); slash != rest.npos) {
    if (slash + 1 < rest.size()) options.key = rest.substr(slash + 1);
    rest = rest.substr(0, slash);
  }
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    std::string member = fmt::format("{}://{}", tls ? "https" : "http", rest.substr(0, comma));
    if (rest.substr(0, comma).rfind(':') == rest.npos || !parse_url(member).ok()) {
      return wrong(place, fmt::format("has '{}', which is no HOST:PORT", rest.substr(0, comma)));
    }
    options.members.push_back(std::move(member));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  if (options.members.empty()) return wrong(place, "names no HOST:PORT");
  return std::unique_ptr<LeaderStore>(std::make_unique<EtcdLeaderStore>(std::move(options)));
}

Result<std::unique_ptr<LeaderStore>> open_kubernetes(const std::string& place, std::string_view rest,
                                                     Duration timeout) {
  const size_t slash = rest.find('/');
  if (slash == rest.npos || slash == 0 || slash + 1 == rest.size() || rest.find('/', slash + 1) != rest.npos) {
    return wrong(place, "names no Lease by its namespace and name");
  }
  KubernetesServer server{.timeout = timeout};
  if (const std::string other = environment("FOLIOT_KUBERNETES_SERVER"); !other.empty()) {
    server = {.url = other, .token_file = {}, .ca_file = {}, .timeout = timeout};
  }
  return std::unique_ptr<LeaderStore>(std::make_unique<KubernetesLeaderStore>(
      std::move(server), KubernetesLeaseName{std::string(rest.substr(0, slash)), std::string(rest.substr(slash + 1))}));
}

}  // namespace

Result<std::unique_ptr<LeaderStore>> open_leader_store(const std::string& place, Duration timeout) {
  const std::string_view text = place;
  const auto rest = [&](std::string_view scheme) { return text.substr(scheme.size()); };
  for (const std::string_view scheme : {"etcd://", "etcds://"}) {
    if (text.starts_with(scheme)) return open_etcd(place, rest(scheme), scheme.starts_with("etcds"), timeout);
  }
  if (text.starts_with("kubernetes://")) return open_kubernetes(place, rest("kubernetes://"), timeout);
  if (!text.starts_with("redis") && !text.starts_with("unix:")) return wrong(place, "is no store");
  FOLIOT_ASSIGN_OR_RETURN(RedisAddress address, RedisAddress::parse(place));
  address.password = environment("FOLIOT_REDIS_PASSWORD");
  return std::unique_ptr<LeaderStore>(std::make_unique<RedisLeaderStore>(std::move(address)));
}

}  // namespace foliot
