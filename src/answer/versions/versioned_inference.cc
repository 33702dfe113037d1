#include "answer/versions/versioned_inference.h"

#include <fmt/format.h>

namespace foliot {

Inference::Started VersionedInference::start(const Query& query, const Caller& caller) {
  const auto chosen = names_.choose_version(query.name, query.version, query.split_key);
  if (!chosen.ok()) return call_error(chosen.status());
  if (chosen->entry == nullptr) return below_.start(query, caller);
  Query versioned = query;
  versioned.name = chosen->entry->name;
  versioned.version = {};
  const VersionTable* const table = chosen->split_among.get();
  if (table == nullptr || (!table->rules.rollback && table->rules.shadow == 0)) return below_.start(versioned, caller);
  const auto version = parse_version(chosen->entry->version);
  return watch_.start(query.name, version.value_or(0), table->rules.shadow, versioned, caller);
}

Status VersionedInference::observe(const Observation& observation) {
  const std::shared_ptr<const VersionTable> table = names_.versions_of(observation.name);
  if (table == nullptr || !table->rules.rollback || observation.losses.empty()) return below_.observe(observation);
  for (const Observation::Loss& each : observation.losses) {
    FOLIOT_RETURN_IF_ERROR(table->find(observation.name, each.model).status());
    if (each.loss >= 0 && each.loss <= 1) continue;
    return Status::invalid_argument(
        fmt::format("the loss of '{}' is {:g}: it must be from 0 to 1", each.model, each.loss));
  }
  for (const Observation::Loss& each : observation.losses) {
    watch_.add_loss(observation.name, table->find(observation.name, each.model).value(), each.loss);
  }
  return Status();
}

}  // namespace foliot
