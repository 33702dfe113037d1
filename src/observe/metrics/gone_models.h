// GoneModels: which models are no longer served, so that their series can leave. A model that is replaced, or comes
// back within kTime, goes on counting.
//
// Threading: of the controller's loop.
#ifndef FOLIOT_OBSERVE_METRICS_GONE_MODELS_H_
#define FOLIOT_OBSERVE_METRICS_GONE_MODELS_H_

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>

#include "foundation/base/time.h"
#include "foundation/core/ids.h"

namespace foliot {

class GoneModels {
 public:
  static constexpr Duration kTime = Duration::seconds(900);

  void on_model(ModelId id, const std::string& name) {
    const auto [known, is_new] = names_.try_emplace(id, name);
    if (!is_new && known->second == name) return;
    if (!is_new) leave(known->second);
    known->second = name;
    ++served_[name];
  }
  void on_removed(ModelId id, TimePoint now) {
    const auto known = names_.find(id);
    if (known == names_.end()) return;
    if (leave(known->second)) gone_.emplace_back(now, known->second);
    names_.erase(known);
  }
  // Calls forget(name) once for each whose time is over.
  template <typename Forget>
  void expire(TimePoint now, Forget forget) {
    while (!gone_.empty() && now - gone_.front().first >= kTime) {
      const std::string name = std::move(gone_.front().second);
      gone_.pop_front();
      if (!served_.contains(name)) forget(name);
    }
  }

 private:
  // Whether it was the last one with this name.
  bool leave(const std::string& name) {
    const auto found = served_.find(name);
    if (--found->second > 0) return false;
    served_.erase(found);
    return true;
  }

  std::unordered_map<ModelId, std::string> names_;
  std::unordered_map<std::string, uint32_t> served_;  // ids with this name
  std::deque<std::pair<TimePoint, std::string>> gone_;
};

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_METRICS_GONE_MODELS_H_
