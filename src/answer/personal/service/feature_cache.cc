#include "answer/personal/service/feature_cache.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>

namespace foliot {

bool FeatureCache::find(const Hash128& key, std::vector<float>& rows) {
  std::shared_ptr<const Prediction> found;
  {
    const MutexLock lock(mutex_);
    found = shelf_.find(key);
  }
  if (found == nullptr) return false;
  const std::string& bytes = found->outputs.front().bytes;
  rows.resize(rows.size() + bytes.size() / sizeof(float));
  std::memcpy(rows.data() + rows.size() - bytes.size() / sizeof(float), bytes.data(), bytes.size());
  return true;
}

void FeatureCache::insert(const Hash128& key, std::span<const float> features) {
  auto prediction = std::make_shared<Prediction>();
  Prediction::Output& output = prediction->outputs.emplace_back();
  output.bytes.assign(reinterpret_cast<const char*>(features.data()), features.size_bytes());
  const MutexLock lock(mutex_);
  shelf_.insert(key, std::move(prediction));
}

uint64_t FeatureCache::bytes() const {
  const MutexLock lock(mutex_);
  return shelf_.bytes();
}

}  // namespace foliot
