#include "cluster/sessions/held_payloads.h"

#include <algorithm>
#include <numeric>

#include "foundation/base/check.h"

namespace foliot {
namespace {

// A handle is the number of its use of the store, above the position of its slot.
constexpr uint32_t kSlotBits = 16;
constexpr uint64_t kSlotMask = (uint64_t{1} << kSlotBits) - 1;

uint64_t sum(const std::vector<uint64_t>& sizes) { return std::accumulate(sizes.begin(), sizes.end(), uint64_t{0}); }

}  // namespace

HeldPayloads::HeldPayloads(uint64_t bytes, uint32_t payloads_max)
    : memory_(std::make_unique_for_overwrite<std::byte[]>(bytes)), blocks_(bytes, payloads_max), slots_(payloads_max) {
  FOLIOT_CHECK(payloads_max <= kSlotMask + 1);
  for (Place place = payloads_max; place-- > 0;) free_.push_back(place);
}

// In microseconds: fewer payloads are held in a second than there are of those.
void HeldPayloads::start_handles(TimePoint controllers_time) {
  const auto microseconds = static_cast<uint64_t>((controllers_time - TimePoint()).nanoseconds() / 1000);
  generation_ = std::max(generation_, microseconds & (UINT64_MAX >> kSlotBits));
}

std::optional<HeldPayloads::Place> HeldPayloads::reserve(const std::vector<uint64_t>& sizes) {
  if (free_.empty()) return std::nullopt;
  const std::optional<IoCache::Block> block = blocks_.acquire(sum(sizes));
  if (!block) return std::nullopt;
  const Place place = free_.back();
  free_.pop_back();
  slots_[place].block = *block;
  slots_[place].sizes = sizes;
  return place;
}

void HeldPayloads::give_back(Place place) {
  FOLIOT_CHECK(slots_[place].generation == 0);
  blocks_.release(slots_[place].block);
  free_.push_back(place);
}

PayloadHandle HeldPayloads::hold(Place place, const TensorBytes& tensors, uint16_t client, uint16_t consumers,
                                 TimePoint until) {
  Slot& slot = slots_[place];
  FOLIOT_CHECK(slot.generation == 0 && consumers > 0 && tensors.size() == slot.sizes.size());
  std::byte* to = memory_.get() + slot.block.offset;
  for (size_t i = 0; i < tensors.size(); ++i) {
    FOLIOT_CHECK(tensors[i].size() == slot.sizes[i]);
    to = std::ranges::copy(tensors[i], to).out;
  }
  slot.generation = ++generation_;
  slot.client = client;
  slot.consumers = consumers;
  slot.until = until;
  ++held_;
  return PayloadHandle(slot.generation << kSlotBits | place);
}

const HeldPayloads::Slot* HeldPayloads::slot_of(PayloadHandle handle, uint16_t client) const {
  const uint64_t place = handle.value() & kSlotMask;
  const uint64_t generation = handle.value() >> kSlotBits;
  if (place >= slots_.size() || generation == 0) return nullptr;
  const Slot& slot = slots_[place];
  return slot.generation == generation && slot.client == client ? &slot : nullptr;
}

TensorBytes HeldPayloads::find(PayloadHandle handle, uint16_t client) const {
  const Slot* slot = slot_of(handle, client);
  if (slot == nullptr) return {};
  TensorBytes tensors;
  const std::byte* from = memory_.get() + slot->block.offset;
  for (const uint64_t size : slot->sizes) {
    tensors.emplace_back(from, size);
    from += size;
  }
  return tensors;
}

void HeldPayloads::consume(PayloadHandle handle, uint16_t client, uint16_t consumers) {
  const Slot* found = slot_of(handle, client);
  if (found == nullptr) return;
  const auto place = static_cast<Place>(found - slots_.data());
  if (consumers >= slots_[place].consumers) return free(place);
  slots_[place].consumers -= consumers;
}

void HeldPayloads::free(Place place) {
  slots_[place].generation = 0;
  --held_;
  give_back(place);
}

template <typename Condition>
void HeldPayloads::free_if(Condition condition) {
  for (Place place = 0; held_ > 0 && place < slots_.size(); ++place) {
    if (slots_[place].generation != 0 && condition(slots_[place])) free(place);
  }
}

void HeldPayloads::free_all_of(uint16_t client) {
  free_if([client](const Slot& slot) { return slot.client == client; });
}

void HeldPayloads::free_all() {
  free_if([](const Slot&) { return true; });
}

void HeldPayloads::free_expired(TimePoint now) {
  free_if([now](const Slot& slot) { return slot.until < now; });
}

}  // namespace foliot
