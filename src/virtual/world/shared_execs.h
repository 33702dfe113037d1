// SharedExecs: ends the EXECs that run at once on one device when its ResourceModel says,
// under a VirtualLoop.
#ifndef FOLIOT_VIRTUAL_WORLD_SHARED_EXECS_H_
#define FOLIOT_VIRTUAL_WORLD_SHARED_EXECS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "virtual/world/resource_model.h"
#include "virtual/world/virtual_loop.h"

namespace foliot {

class SharedExecs {
 public:
  explicit SharedExecs(VirtualLoop& loop) : loop_(loop) {}

  // An EXEC begins now; on_end() is called when it has ended.
  void begin(std::vector<OperatorLoad> operators, std::function<void()> on_end) {
    const ResourceModel::Key key = next_++;
    model_.begin(key, std::move(operators), loop_.now());
    on_end_.emplace(key, std::move(on_end));
    schedule();
  }

 private:
  // The next end, as long as nothing else begins before.
  void schedule() {
    const auto next = model_.next_end();
    if (!next) return;
    loop_.at(next->second, [this, key = next->first, change = ++changes_] {
      if (change == changes_) end(key);
    });
  }

  void end(ResourceModel::Key key) {
    model_.end(key, loop_.now());
    const std::function<void()> on_end = std::move(on_end_.at(key));
    on_end_.erase(key);
    schedule();
    on_end();
  }

  VirtualLoop& loop_;
  ResourceModel model_;
  std::map<ResourceModel::Key, std::function<void()>> on_end_;
  ResourceModel::Key next_ = 0;
  uint64_t changes_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_WORLD_SHARED_EXECS_H_
