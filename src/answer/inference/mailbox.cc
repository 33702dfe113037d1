#include "answer/inference/mailbox.h"

#include <utility>

#include "foundation/base/check.h"

namespace foliot {

Mailbox::Mailbox(uint32_t capacity, std::function<void()> wake) : done_(capacity), wake_(std::move(wake)) {}

void Mailbox::push(Delivery& delivery) {
  FOLIOT_CHECK(done_.push(&delivery));
  wake_once();
}

void Mailbox::post(std::function<void()> task) {
  MutexLock lock(mutex_);
  if (closed_) return;
  tasks_.push_back(std::move(task));
  wake_once();
}

void Mailbox::close() {
  MutexLock lock(mutex_);
  closed_ = true;
  tasks_.clear();
}

void Mailbox::wake_once() {
  if (!awake_.exchange(true)) wake_();
}

void Mailbox::deliver() {
  // Before looking: what is pushed after the last look wakes again.
  awake_.exchange(false);
  while (const auto delivery = done_.pop()) (*delivery)->deliver();

  std::vector<std::function<void()>> tasks;
  {
    MutexLock lock(mutex_);
    tasks.swap(tasks_);
  }
  for (const auto& task : tasks) task();
}

}  // namespace foliot
