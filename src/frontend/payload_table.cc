#include "frontend/payload_table.h"

#include "base/check.h"
#include "frontend/pending_call.h"

namespace foliot {
namespace {

uint32_t slot_of(PayloadHandle payload) { return static_cast<uint32_t>(payload.value()); }
uint32_t generation_of(PayloadHandle payload) { return static_cast<uint32_t>(payload.value() >> 32); }

}  // namespace

PayloadTable::PayloadTable(uint32_t capacity) : slots_(capacity) {
  free_.reserve(capacity);
  for (uint32_t i = capacity; i > 0; --i) free_.push_back(i - 1);
}

bool PayloadTable::acquire(PendingCall& call, std::span<PayloadHandle> handles) {
  std::lock_guard lock(mutex_);
  if (free_.size() < handles.size()) return false;
  for (uint32_t row = 0; row < handles.size(); ++row) {
    const uint32_t index = free_.back();
    free_.pop_back();
    Slot& slot = slots_[index];
    slot.row = {.call = &call, .index = row};
    const uint32_t generation = slot.generation.load(std::memory_order_relaxed) + 1;
    slot.generation.store(generation, std::memory_order_release);
    handles[row] = PayloadHandle((uint64_t{generation} << 32) | index);
  }
  in_use_.fetch_add(static_cast<uint32_t>(handles.size()), std::memory_order_relaxed);
  return true;
}

void PayloadTable::release(std::span<const PayloadHandle> handles) {
  std::lock_guard lock(mutex_);
  for (PayloadHandle payload : handles) {
    find(payload);
    Slot& slot = slots_[slot_of(payload)];
    slot.row = {};
    slot.generation.fetch_add(1, std::memory_order_release);
    free_.push_back(slot_of(payload));
  }
  in_use_.fetch_sub(static_cast<uint32_t>(handles.size()), std::memory_order_relaxed);
}

PayloadTable::Row PayloadTable::find(PayloadHandle payload) const {
  FOLIOT_CHECK(slot_of(payload) < slots_.size());
  const Slot& slot = slots_[slot_of(payload)];
  const uint32_t generation = slot.generation.load(std::memory_order_acquire);
  FOLIOT_CHECK(generation == generation_of(payload) && generation % 2 == 1);
  return slot.row;
}

std::span<const std::byte> PayloadTable::input(PayloadHandle payload, uint32_t index) {
  const Row row = find(payload);
  return row.call->call().input(row.index, index);
}

std::span<std::byte> PayloadTable::output(PayloadHandle payload, uint32_t index) {
  const Row row = find(payload);
  return row.call->call().output(row.index, index);
}

}  // namespace foliot
