// CompileOrder: the order in which the models of a server are compiled, each in two steps:
// first its smallest batch size, with which it is served, then the whole model. The first
// step of every model comes before the second of any, and within a step models that
// clients have asked for come before others, in the order in which they were asked for.
//
// Takes memory for each model that waits, and no more.
//
// Threading: one thread at a time.
#ifndef FOLIOT_NODE_REPOSITORY_COMPILE_ORDER_H_
#define FOLIOT_NODE_REPOSITORY_COMPILE_ORDER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace foliot {

class CompileOrder {
 public:
  enum class Step : uint8_t { kFirst, kWhole };
  struct Next {
    std::string model;
    Step step = Step::kFirst;
  };

  // A model waits for one step at a time: the last one added.
  void add(const std::string& model, Step step);
  // Without effect unless the model waits.
  void ask_for(const std::string& model);
  // For what it waited.
  std::optional<Step> remove(const std::string& model);
  bool waits(Step step) const { return !queues_[static_cast<size_t>(step)].empty(); }
  // The one whose turn it is, which does not wait any more. nullopt: none waits.
  std::optional<Next> take();

 private:
  // Those asked for first, then in the order of add() or ask_for().
  using Place = std::pair<bool, uint64_t>;
  struct Waiting {
    Step step;
    Place place;
  };
  std::map<Place, std::string>& queue(Step step) { return queues_[static_cast<size_t>(step)]; }

  std::array<std::map<Place, std::string>, 2> queues_;  // by Step
  std::map<std::string, Waiting> waiting_;
  uint64_t places_ = 0;  // given so far
};

}  // namespace foliot

#endif  // FOLIOT_NODE_REPOSITORY_COMPILE_ORDER_H_
