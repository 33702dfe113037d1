#include "node/tuning/worker_pool_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/variants/variant.h"
#include "foundation/config/toml_file.h"
#include "foundation/config/toml_reader.h"
#include "foundation/core/ids.h"
#include "foundation/core/model_info.h"

namespace foliot {
namespace {

// More than one controller's links are made for.
constexpr uint32_t kWorkersMax = 1000;
constexpr uint32_t kDefaultMost = 8;

// NAMESPACE/NAME; in the namespace `default` without the first.
void read_stateful_set(TomlReader& reader, const std::string& text, KubernetesWorkerPoolOptions::StatefulSet& to) {
  const size_t slash = text.find('/');
  to.name = slash == std::string::npos ? text : text.substr(slash + 1);
  if (slash != std::string::npos) to.name_space = text.substr(0, slash);
  const auto is_name = [](const std::string& name) {
    return !name.empty() && name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") == std::string::npos;
  };
  if (is_name(to.name) && is_name(to.name_space)) return;
  reader.fail("stateful_set", fmt::format("is '{}', and must be NAMESPACE/NAME of a StatefulSet", text));
}

Status read_kind(TomlReader& reader, const TaskOptions& prices, WorkerPoolFile& to) {
  std::string name;
  std::string stateful_set;
  std::vector<std::string> command;
  WorkerKind kind{.least = 1, .most = kDefaultMost};
  reader.text("name", name);
  reader.texts("command", command);
  reader.text("stateful_set", stateful_set);
  // Without a worker no model is known, and no request comes by which one would start.
  reader.whole("workers_least", kind.least, 1, kWorkersMax);
  reader.whole("workers_most", kind.most, 1, kWorkersMax);
  if (!is_kind_name(name)) {
    reader.fail("name", fmt::format("is '{}', and must be 1 to {} letters, digits and .:_-", name, kKindBytesMax));
  }
  if (kind.least > kind.most) {
    reader.fail("workers_least",
                fmt::format("is {}, and must not be above workers_most, which is {}", kind.least, kind.most));
  }
  if (command.empty() == stateful_set.empty()) {
    reader.fail("needs either 'command', a list of texts, or 'stateful_set'");
  }
  if (command.size() == 1 && command.front().find(' ') != std::string::npos) {
    reader.fail("command",
                fmt::format("is the text '{}', and must be a list with a text for each word", command.front()));
  }
  kind.price = per_second_of_hourly(prices.hourly_dollars_of(name));
  if (!to.autoscaler.kinds.emplace(name, kind).second) reader.fail("name", fmt::format("'{}' is there already", name));
  if (stateful_set.empty()) {
    to.processes.commands[name] = std::move(command);
  } else {
    read_stateful_set(reader, stateful_set, to.kubernetes.stateful_sets[name]);
  }
  return reader.finish();
}

Status read_kubernetes(TomlReader& reader, KubernetesWorkerPoolOptions& to) {
  std::string token_file = to.token_file;
  std::string ca_file = to.ca_file;
  reader.text("server", to.server);
  reader.text("token_file", token_file);
  reader.text("ca_file", ca_file);
  if (!to.server.starts_with("http://") && !to.server.starts_with("https://")) {
    reader.fail("server", fmt::format("is '{}', and must begin with https://", to.server));
  }
  // A server without TLS is one that stands beside, such as `kubectl proxy`, and needs neither.
  const bool plain = to.server.starts_with("http://");
  to.token_file = plain && !reader.has("token_file") ? "" : token_file;
  to.ca_file = plain && !reader.has("ca_file") ? "" : ca_file;
  return reader.finish();
}

}  // namespace

Result<WorkerPoolFile> read_worker_pool_file(const std::filesystem::path& file, const TaskOptions& prices) {
  FOLIOT_ASSIGN_OR_RETURN(const toml::table table, read_toml_file(file));
  TomlReader reader(table, file.string());
  WorkerPoolFile pools;
  reader.positive("start_up", pools.autoscaler.start_up);
  if (double hourly_budget = 0; reader.has("hourly_budget")) {
    reader.positive("hourly_budget", hourly_budget);
    pools.autoscaler.budget = per_second_of_hourly(hourly_budget);
  }
  std::vector<TomlReader> kinds = reader.tables("kind");
  if (kinds.empty()) reader.fail("needs a [[kind]] of workers");
  for (TomlReader& kind : kinds) FOLIOT_RETURN_IF_ERROR(read_kind(kind, prices, pools));
  const bool compares = kinds.size() > 1 || reader.has("hourly_budget");
  for (const auto& [name, kind] : pools.autoscaler.kinds) {
    if (!compares || prices.hourly_dollars.contains(name)) continue;
    reader.fail(
        fmt::format("has the kind '{}', which has no price: a budget, or several kinds, are compared in dollars; "
                    "give the dollars per hour of each kind with --prices",
                    name));
  }
  if (std::optional<TomlReader> kubernetes = reader.table("kubernetes")) {
    FOLIOT_RETURN_IF_ERROR(read_kubernetes(*kubernetes, pools.kubernetes));
  }
  FOLIOT_RETURN_IF_ERROR(reader.finish());
  return pools;
}

void add_worker_flags(ProcessWorkerPoolOptions& pools, std::string_view listen, uint16_t port) {
  std::string host(listen.substr(0, listen.rfind(':')));
  if (host.empty() || host == "0.0.0.0" || host == "[::]") host = "127.0.0.1";
  for (auto& each : pools.commands) {
    std::vector<std::string>& command = each.second;
    const auto has = [&command](std::string_view flag) {
      return std::ranges::any_of(
          command, [&](const std::string& word) { return word == flag || word.starts_with(std::string(flag) + "="); });
    };
    if (!has("--controller")) command.insert(command.end(), {"--controller", fmt::format("{}:{}", host, port)});
    if (!has("--data-listen")) command.insert(command.end(), {"--data-listen", "127.0.0.1:0"});
  }
}

}  // namespace foliot
