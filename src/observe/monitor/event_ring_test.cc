#include "observe/monitor/event_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "foundation/base/test_seed.h"

namespace foliot {
namespace {

// Of an odd size, and long, so that a torn copy is likely, and shows.
struct Event {
  std::array<uint64_t, 63> numbers{};
  uint32_t last = 0;
};
Event event(uint64_t number) {
  Event event{.last = static_cast<uint32_t>(number)};
  event.numbers.fill(number);
  return event;
}
bool whole(const Event& event) {
  for (const uint64_t number : event.numbers) {
    if (number != event.numbers[0]) return false;
  }
  return event.last == static_cast<uint32_t>(event.numbers[0]);
}

// The model: a list of all events, of which the last `capacity` can be read.
TEST(EventRing, KeepsTheLastEvents) {
  std::mt19937_64 random(fresh_seed());
  for (int run = 0; run < 20; ++run) {
    const size_t capacity = size_t{1} << (random() % 7);
    EventRing<Event> ring(capacity);
    ASSERT_EQ(ring.capacity(), capacity);
    std::vector<uint64_t> model;
    for (int step = 0; step < 500; ++step) {
      if (random() % 3 != 0) {
        model.push_back(random());
        ring.push(event(model.back()));
      }
      ASSERT_EQ(ring.written(), model.size());
      ASSERT_EQ(ring.oldest(), model.size() - std::min(model.size(), capacity));
      const uint64_t asked = random() % (model.size() + 3);
      const std::optional<Event> found = ring.read(asked);
      ASSERT_EQ(found.has_value(), ring.oldest() <= asked && asked < model.size()) << asked;
      if (!found) continue;
      ASSERT_EQ(found->numbers[0], model[asked]);
    }
  }
}

TEST(EventRing, RoundsItsCapacityUp) {
  EXPECT_EQ(EventRing<Event>(0).capacity(), 1u);
  EXPECT_EQ(EventRing<Event>(5).capacity(), 8u);
}

// Event i has the number i. The writer overtakes the reader all the time.
TEST(EventRing, AReaderNeverSeesHalfAnEvent) {
  constexpr uint64_t kEvents = 1'000'000;
  EventRing<Event> ring(1);
  std::jthread writer([&ring] {
    for (uint64_t i = 0; i < kEvents; ++i) ring.push(event(i));
  });
  uint64_t read = 0;
  for (uint64_t next = 0; next < kEvents;) {
    next = std::max(next, ring.oldest());
    const std::optional<Event> found = ring.read(next);
    if (!found) continue;
    ASSERT_TRUE(whole(*found)) << next;
    ASSERT_EQ(found->numbers[0], next);
    ++read;
    ++next;
  }
  EXPECT_GT(read, 0u);
}

}  // namespace
}  // namespace foliot
