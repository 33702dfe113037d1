#include "answer/model_calls/payload_table.h"

#include <utility>

#include "answer/model_calls/pending_call.h"
#include "foundation/base/check.h"
#include "foundation/core/action.h"

namespace foliot {
namespace {

uint32_t generation_of(PayloadHandle payload) { return static_cast<uint32_t>(payload.value() >> 32); }

// What of so much may be taken before others are evicted; all of it where what is kept
// would not hold the largest batch of a compiled model.
constexpr uint64_t kKeptPart = 8;
uint64_t without_kept(uint64_t all, uint64_t batch_max) {
  return all / kKeptPart >= batch_max ? all - all / kKeptPart : all;
}

QueueShares::Entry entry_of(const PendingCall& pending) {
  const InferenceCall& call = pending.call();
  QueueShares::Entry entry{.amount = {call.rows(), call.body_bytes()},
                           .arrival = call.arrival(),
                           .deadline = call.deadline(),
                           .offline = call.offline()};
  if (const Tenant* tenant = pending.tenant()) {
    entry.tenant = tenant->id();
    entry.weight = tenant->weight();
  }
  return entry;
}

}  // namespace

PayloadTable::PayloadTable(uint32_t capacity, uint64_t bytes_max)
    : slots_(capacity),
      claims_(capacity),
      shares_({without_kept(capacity, kCompiledBatchSizeMax), without_kept(bytes_max, 1)},
              [this](const QueueShares::Entry& entry) REQUIRES(mutex_) {
                const Claim& claim = claims_[slot_of(PayloadHandle(entry.id))];
                return claim.counted && claim.entry.id == entry.id;
              }) {
  FOLIOT_CHECK(capacity <= kRowsMax);
  free_.reserve(capacity);
  for (uint32_t i = capacity; i > 0; --i) free_.push_back(i - 1);
}

PayloadTable::~PayloadTable() {
  // Calls give back their handles.
  for (Slot& slot : slots_) slot.kept.reset();
}

bool PayloadTable::acquire(PendingCall& call, std::span<PayloadHandle> handles, std::vector<PayloadHandle>& evicted) {
  MutexLock lock(mutex_);
  if (free_.size() < handles.size()) return false;
  QueueShares::Entry entry = entry_of(call);
  entry.id = next_handle(free_.back()).value();
  entry.sequence = next_sequence_++;
  evicted_.clear();
  if (!shares_.admit(entry, evicted_)) return false;
  for (const QueueShares::Entry& other : evicted_) {
    const uint32_t slot = slot_of(PayloadHandle(other.id));
    claims_[slot].counted = false;
    const std::span<const PayloadHandle> rows = slots_[slot].row.call->handles();
    evicted.insert(evicted.end(), rows.begin(), rows.end());
  }
  for (uint32_t row = 0; row < handles.size(); ++row) {
    const uint32_t index = free_.back();
    free_.pop_back();
    slots_[index].row = {.call = &call, .index = row};
    handles[row] = next_handle(index);
    slots_[index].generation.store(generation_of(handles[row]), std::memory_order_release);
  }
  claims_[slot_of(handles.front())] = {entry, true};
  in_use_.fetch_add(static_cast<uint32_t>(handles.size()), std::memory_order_relaxed);
  return true;
}

PayloadHandle PayloadTable::next_handle(uint32_t slot) const {
  const uint32_t generation = slots_[slot].generation.load(std::memory_order_relaxed) + 1;
  return PayloadHandle((uint64_t{generation} << 32) | slot);
}

void PayloadTable::release(std::span<const PayloadHandle> handles) {
  MutexLock lock(mutex_);
  Claim& claim = claims_[slot_of(handles.front())];
  if (std::exchange(claim.counted, false)) shares_.remove(claim.entry);
  for (PayloadHandle payload : handles) {
    find(payload);
    Slot& slot = slots_[slot_of(payload)];
    slot.row = {};
    slot.generation.fetch_add(1, std::memory_order_release);
    free_.push_back(slot_of(payload));
  }
  const auto count = static_cast<uint32_t>(handles.size());
  if (in_use_.fetch_sub(count, std::memory_order_relaxed) == count) unused_.notify_all();
}

PendingCall& PayloadTable::keep(std::unique_ptr<PendingCall> call) {
  Slot& slot = slots_[slot_of(call->handles().front())];
  FOLIOT_CHECK(slot.row.call == call.get() && slot.kept == nullptr);
  slot.kept = std::move(call);
  return *slot.kept;
}

std::unique_ptr<PendingCall> PayloadTable::give(const PendingCall& call) {
  Slot& slot = slots_[slot_of(call.handles().front())];
  FOLIOT_CHECK(slot.kept.get() == &call);
  return std::move(slot.kept);
}

PendingCall* PayloadTable::find_call(PayloadHandle first) const {
  if (slot_of(first) >= slots_.size()) return nullptr;
  const Slot& slot = slots_[slot_of(first)];
  const uint32_t generation = slot.generation.load(std::memory_order_acquire);
  return generation == generation_of(first) && generation % 2 == 1 && slot.row.index == 0 ? slot.row.call : nullptr;
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
  InferenceCall& call = row.call->call();
  const std::optional<uint32_t> visit = visit_slot(payload);
  return visit ? call.input_of(*visit, row.index, index) : call.input(row.index, index);
}

std::span<std::byte> PayloadTable::output(PayloadHandle payload, uint32_t index) {
  const Row row = find(payload);
  InferenceCall& call = row.call->call();
  const std::optional<uint32_t> visit = visit_slot(payload);
  return visit ? call.output_of(*visit, row.index, index) : call.output(row.index, index);
}

VisitReading PayloadTable::finish(PayloadHandle payload) {
  const std::optional<uint32_t> visit = visit_slot(payload);
  if (!visit) return {};
  const Row row = find(payload);
  return row.call->call().finish(*visit, row.index);
}

void PayloadTable::finish_empty(PayloadHandle run, uint32_t stage) {
  const Row row = find(run);
  row.call->call().finish_empty(stage, row.index);
}

void PayloadTable::fail(PayloadHandle payload, std::string_view reason) { find(payload).call->call().fail(reason); }

bool PayloadTable::wait_until_unused(Duration timeout) {
  MutexLock lock(mutex_);
  return unused_.wait_for(mutex_, timeout, [this]() REQUIRES(mutex_) { return in_use() == 0; });
}

}  // namespace foliot
