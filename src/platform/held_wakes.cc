#include "platform/held_wakes.h"

#include <utility>

#include "base/check.h"
#include "platform/parker.h"

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
  if (Parker* const held = std::exchange(held_, nullptr)) held->unpark();
}

void HeldWakes::unpark(Parker& parker) {
  HeldWakes* const wakes = of_this_thread;
  if (wakes == nullptr || (wakes->held_ != nullptr && wakes->held_ != &parker)) return parker.unpark();
  wakes->held_ = &parker;
}

}  // namespace foliot
