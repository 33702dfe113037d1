#include "answer/versions/versioned_inference.h"

namespace foliot {

Inference::Started VersionedInference::start(const Query& query, const Caller& caller) {
  const Result<Catalog::EntryPtr> chosen = names_.choose_version(query.name, query.version, query.split_key);
  if (!chosen.ok()) return call_error(chosen.status());
  if (*chosen == nullptr) return below_.start(query, caller);
  Query versioned = query;
  versioned.name = (*chosen)->name;
  versioned.version = {};
  return below_.start(versioned, caller);
}

}  // namespace foliot
