#include "foundation/base/held_wakes.h"

#include <utility>

#include "foundation/base/check.h"

namespace foliot {
namespace {

constinit thread_local HeldWakes* of_this_thread = nullptr;

}  // namespace

HeldWakes::HeldWakes() {
  FOLIOT_CHECK(of_this_thread == nullptr);
  of_this_thread = this;
}

HeldWakes::~HeldWakes() {
  release();
  of_this_thread = nullptr;
}

void HeldWakes::release() {
  if (Sleeper* const held = std::exchange(held_, nullptr)) held->wake();
}

void HeldWakes::wake(Sleeper& sleeper) {
  HeldWakes* const wakes = of_this_thread;
  if (wakes == nullptr || (wakes->held_ != nullptr && wakes->held_ != &sleeper)) return sleeper.wake();
  wakes->held_ = &sleeper;
}

}  // namespace foliot
