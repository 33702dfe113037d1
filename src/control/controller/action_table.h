// ActionTable: the actions that were sent and have no outcome yet. An action stays
// where it is until it is over, and its place is taken by the next one that is sent:
// so few places are in use, and they stay in the processor's caches.
//
// Threading: not thread-safe; one owner.
#ifndef FOLIOT_CONTROL_CONTROLLER_ACTION_TABLE_H_
#define FOLIOT_CONTROL_CONTROLLER_ACTION_TABLE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "foundation/base/check.h"
#include "foundation/base/flat_map.h"
#include "foundation/core/action.h"

namespace foliot {

class ActionTable {
 public:
  size_t size() const { return places_.size(); }

  // REQUIRES: its id is not here. What is returned holds until it is taken.
  const Action& add(const Action& action) {
    if (unused_.empty()) {
      unused_.push_back(static_cast<uint32_t>(actions_.size()));
      actions_.emplace_back();
    }
    const uint32_t place = unused_.back();
    unused_.pop_back();
    FOLIOT_CHECK(places_.insert(action.id, place));
    return actions_[place] = action;
  }
  // nullptr if it is not here; holds until it is taken.
  const Action* find(ActionId id) const {
    const uint32_t* place = places_.find(id);
    return place == nullptr ? nullptr : &actions_[*place];
  }
  // Removes it. REQUIRES: it is here.
  Action take(ActionId id) {
    const uint32_t* found = places_.find(id);
    FOLIOT_CHECK(found != nullptr);
    const uint32_t place = *found;
    places_.erase(id);
    unused_.push_back(place);
    return actions_[place];
  }

  // In the order of ids, so that the same events have the same effects.
  std::vector<ActionId> of_device(DeviceId device) const {
    std::vector<ActionId> ids;
    for_each([&](const Action& action) {
      if (action.device == device) ids.push_back(action.id);
    });
    std::sort(ids.begin(), ids.end());
    return ids;
  }
  // In no order: whatever comes of it is to be sorted, or not to depend on it.
  template <typename Visit>
  void for_each(Visit visit) const {
    places_.for_each([&](ActionId, uint32_t place) { visit(actions_[place]); });
  }

 private:
  std::deque<Action> actions_;
  std::vector<uint32_t> unused_;  // positions in actions_; the last used first
  FlatMap<ActionId, uint32_t> places_;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_ACTION_TABLE_H_
