// WantedLoads: the models that a LOAD would help now, each once, the one that was looked at
// the longest ago first. Every operation takes constant time.
//
// Threading: not thread-safe; the policy's.
#ifndef FOLIOT_CONTROL_POLICIES_FOLIOT_WANTED_LOADS_H_
#define FOLIOT_CONTROL_POLICIES_FOLIOT_WANTED_LOADS_H_

#include <cstddef>
#include <list>
#include <optional>
#include <vector>

#include "foundation/base/time.h"
#include "foundation/core/ids.h"

namespace foliot::foliot_policy {

struct WantedLoad {
  ModelId model;
  TimePoint since;
  // 1 if it is loaded nowhere; less if it is, and its holders are busy.
  double factor = 1;
  // A further copy goes where there is no more to do than this.
  Duration backlog_max = Duration::max();
};

class WantedLoads {
 public:
  using Iterator = std::list<WantedLoad>::iterator;

  bool empty() const { return loads_.empty(); }
  size_t size() const { return loads_.size(); }
  Iterator begin() { return loads_.begin(); }
  Iterator end() { return loads_.end(); }
  bool contains(ModelId model) const { return model.value() < places_.size() && places_[model.value()].has_value(); }

  // Behind all others; or, if the model is wanted already, in its place and since then.
  // True if it was not.
  bool put(const WantedLoad& wanted);
  // Nothing happens if it is not wanted.
  void erase(ModelId model);
  // Returns the one that follows.
  Iterator erase(Iterator wanted);
  // Those before `first` are put behind the last: they were looked at.
  void rotate(Iterator first) { loads_.splice(loads_.end(), loads_, loads_.begin(), first); }

 private:
  std::list<WantedLoad> loads_;
  std::vector<std::optional<Iterator>> places_;  // by model
};

}  // namespace foliot::foliot_policy

#endif  // FOLIOT_CONTROL_POLICIES_FOLIOT_WANTED_LOADS_H_
