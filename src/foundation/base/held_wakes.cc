#include "foundation/base/held_wakes.h"

#include <utility>

#include "foundation/base/check.h"

namespace foliot {
namespace {

constinit thread_local HeldWakes* of_this_thread = nullptr;

// A request: the loop that sends it, what executes it, the loop that completes it.
constexpr int kServedMax = 8;

}  // namespace

HeldWakes::HeldWakes() {
  FOLIOT_CHECK(of_this_thread == nullptr);
  of_this_thread = this;
}

HeldWakes::~HeldWakes() {
  wake_held();
  of_this_thread = nullptr;
}

void HeldWakes::release() {
  for (int i = 0; held_ != nullptr && i < kServedMax; ++i) std::exchange(held_, nullptr)->wake_or_serve();
  wake_held();
}

void HeldWakes::wake_held() {
  if (Sleeper* const held = std::exchange(held_, nullptr)) held->wake();
}

void HeldWakes::wake_held_of_this_thread() {
  if (of_this_thread != nullptr) of_this_thread->wake_held();
}

void HeldWakes::wake(Sleeper& sleeper) {
  HeldWakes* const wakes = of_this_thread;
  if (wakes == nullptr || (wakes->held_ != nullptr && wakes->held_ != &sleeper)) return sleeper.wake();
  wakes->held_ = &sleeper;
}

}  // namespace foliot
