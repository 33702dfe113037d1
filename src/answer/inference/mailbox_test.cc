#include "answer/inference/mailbox.h"

#include <gtest/gtest.h>

#include <thread>

namespace foliot {
namespace {

class CountingDelivery : public Delivery {
 public:
  void deliver() override { ++done; }
  int done = 0;
};

TEST(MailboxTest, WakesOncePerDelivery) {
  int wakes = 0;
  Mailbox mailbox(4, [&] { ++wakes; });
  CountingDelivery delivery;
  mailbox.push(delivery);
  mailbox.push(delivery);
  mailbox.post([] {});
  EXPECT_EQ(wakes, 1);
  mailbox.deliver();
  EXPECT_EQ(delivery.done, 2);
  mailbox.push(delivery);
  EXPECT_EQ(wakes, 2);
}

TEST(MailboxTest, DropsTasksOnceClosed) {
  int wakes = 0;
  int run = 0;
  Mailbox mailbox(4, [&] { ++wakes; });
  mailbox.post([&] { ++run; });
  mailbox.close();
  mailbox.post([&] { ++run; });
  mailbox.deliver();
  EXPECT_EQ(run, 0);
  EXPECT_EQ(wakes, 1);
}

TEST(MailboxTest, NothingPushedIsLeftLyingWithoutAWake) {
  constexpr int kPushes = 20000;
  std::atomic<int> wakes{0};
  Mailbox mailbox(kPushes, [&] { wakes.fetch_add(1); });
  CountingDelivery delivery;
  std::thread producer([&] {
    for (int i = 0; i < kPushes; ++i) mailbox.push(delivery);
  });
  int handled = 0;
  while (delivery.done < kPushes)
    if (handled < wakes.load()) {
      ++handled;
      mailbox.deliver();
    }
  producer.join();
  EXPECT_EQ(delivery.done, kPushes);
}

}  // namespace
}  // namespace foliot
