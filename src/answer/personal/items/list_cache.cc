#include "answer/personal/items/list_cache.h"

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace foliot {

static_assert(std::is_trivially_copyable_v<ScoredItem>);

Hash128 ListCache::key(const Source& source) const {
  const std::array<uint64_t, 5> numbers = {source.user, source.first_number, source.observations, source.version,
                                           source.k};
  StreamHash hash(secret_);
  hash.update(std::as_bytes(std::span(numbers)));
  hash.update(std::as_bytes(source.weights));
  return hash.digest();
}

std::optional<std::vector<ScoredItem>> ListCache::find(const Hash128& key) {
  const std::shared_ptr<const Prediction> found = shelf_.find(key);
  if (found == nullptr) return std::nullopt;
  const std::string& bytes = found->outputs.front().bytes;
  std::vector<ScoredItem> list(bytes.size() / sizeof(ScoredItem));
  std::memcpy(list.data(), bytes.data(), bytes.size());
  return list;
}

void ListCache::insert(const Hash128& key, const std::vector<ScoredItem>& list) {
  auto prediction = std::make_shared<Prediction>();
  prediction->outputs.emplace_back().bytes.assign(reinterpret_cast<const char*>(list.data()),
                                                  list.size() * sizeof(ScoredItem));
  shelf_.insert(key, std::move(prediction));
}

}  // namespace foliot
