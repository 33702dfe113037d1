// LaneClaims: how the EXEC executors of a device's lanes agree on an EXEC that takes several of
// them. The executor of its first lane leads it: it begins once all the others offer their
// lanes to it, and gives them back at its end.
//
// A lane offers itself to the INFER that it would take next, and may withdraw that until the
// leader has taken it. The leader takes all lanes or none. No lane waits for another while it
// has something else to take first, so that two wide INFERs never wait for each other: all
// executors take INFERs in one order.
//
// Threading: offer(), withdraw() and state() of a lane belong to its executor; take_all() and
// give_back() to the leader. No lock.
#ifndef FOLIOT_ENGINE_WORKER_LANE_CLAIMS_H_
#define FOLIOT_ENGINE_WORKER_LANE_CLAIMS_H_

#include <array>
#include <atomic>
#include <cstdint>

#include "foundation/core/lanes.h"

namespace foliot {

class LaneClaims {
 public:
  enum class State : uint8_t { kFree, kOffered, kTaken, kGivenBack };

  // Offers the lane to the INFER in this slot. REQUIRES: free.
  void offer(uint32_t lane, uint32_t slot) { set(lane, State::kOffered, slot); }
  // Makes an offered lane free. False if the leader has taken it meanwhile.
  bool withdraw(uint32_t lane) {
    uint64_t now = lanes_[lane].value.load();
    return state_of(now) == State::kOffered && lanes_[lane].value.compare_exchange_strong(now, value(State::kFree, 0));
  }
  State state(uint32_t lane) const { return state_of(lanes_[lane].value.load()); }
  // A lane that was given back is free. REQUIRES: given back.
  void reset(uint32_t lane) { set(lane, State::kFree, 0); }

  // Takes all lanes of the INFER but the first, which is the leader's, if all are offered to
  // it, and returns their number. Otherwise none: it returns how many were taken, and are
  // offered again; their executors may have looked meanwhile, and need to look again.
  uint32_t take_all(LaneInterval lanes, uint32_t slot) {
    const uint32_t first = lanes.first + 1u;
    // Without this look, leader and lanes would wake each other for as long as one lane is busy.
    for (uint32_t lane = first; lane < lanes.end(); ++lane) {
      if (lanes_[lane].value.load() != value(State::kOffered, slot)) return 0;
    }
    for (uint32_t lane = first; lane < lanes.end(); ++lane) {
      uint64_t offered = value(State::kOffered, slot);
      if (lanes_[lane].value.compare_exchange_strong(offered, value(State::kTaken, slot))) continue;
      for (uint32_t taken = first; taken < lane; ++taken) offer(taken, slot);
      return lane - first;
    }
    return lanes.count - 1u;
  }
  // REQUIRES: the leader has taken it.
  void give_back(uint32_t lane) { set(lane, State::kGivenBack, 0); }

 private:
  static uint64_t value(State state, uint32_t slot) { return uint64_t{slot} << 8 | static_cast<uint8_t>(state); }
  static State state_of(uint64_t value) { return static_cast<State>(value & 0xff); }
  void set(uint32_t lane, State state, uint32_t slot) { lanes_[lane].value.store(value(state, slot)); }

  struct alignas(64) Lane {
    std::atomic<uint64_t> value{0};
  };
  std::array<Lane, kLanesMax> lanes_{};
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_WORKER_LANE_CLAIMS_H_
