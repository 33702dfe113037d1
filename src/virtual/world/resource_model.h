// ResourceModel: how EXECs that run at once slow each other down: the truth of a simulated
// device, of which a policy sees only what it predicts (Abacus, section 5.1: kernels overlap
// freely and contend).
//
// Each operator takes a share of the device's compute and one of its memory bandwidth. As
// long as neither sum over what runs exceeds 1, each is as fast as alone; else all slow down
// in proportion to the larger sum.
#ifndef FOLIOT_VIRTUAL_WORLD_RESOURCE_MODEL_H_
#define FOLIOT_VIRTUAL_WORLD_RESOURCE_MODEL_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "foundation/base/time.h"

namespace foliot {

struct OperatorLoad {
  Duration alone;      // above 0
  double compute = 1;  // share of the device, up to 1
  double memory = 0;
};

class ResourceModel {
 public:
  using Key = uint64_t;

  // An EXEC of these operators, one after the other, begins. REQUIRES: its key is not in use,
  // there is at least one operator, and `now` is not before that of an earlier call.
  void begin(Key key, std::vector<OperatorLoad> operators, TimePoint now);
  // The first EXEC to end, and when, if none begins before; nullopt if none runs. It is there
  // until end().
  std::optional<std::pair<Key, TimePoint>> next_end() const;
  void end(Key key, TimePoint now);

 private:
  struct Running {
    Key key;
    std::vector<OperatorLoad> operators;
    size_t at = 0;    // the operator that runs
    double left = 0;  // ns of it, at full speed
    bool over() const { return at == operators.size(); }
  };
  // How many times as long as alone everything takes now.
  static double slowdown(const std::vector<Running>& running);
  // Until the first of the operators that run is over, at most `span` ns. Returns the ns passed.
  static double step(std::vector<Running>& running, double span);
  void advance(TimePoint now);

  std::vector<Running> running_;
  TimePoint now_;
};

// From when EXECs of these operators begin at once until the last one has ended.
Duration time_together(const std::vector<std::vector<OperatorLoad>>& execs);

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_WORLD_RESOURCE_MODEL_H_
