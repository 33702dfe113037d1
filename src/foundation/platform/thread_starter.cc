#include "foundation/platform/thread_starter.h"

namespace foliot {

Result<std::unique_ptr<ThreadStarter>> ThreadStarter::make() {
  std::unique_ptr<ThreadStarter> starter(new ThreadStarter());
  FOLIOT_ASSIGN_OR_RETURN(starter->thread_,
                          Thread::start({.name = "thread starter"}, [&made = *starter] { made.run(); }));
  return starter;
}

ThreadStarter::~ThreadStarter() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

Result<Thread> ThreadStarter::start(const ThreadOptions& options, std::function<void()> body) {
  Order order{options, std::move(body)};
  MutexLock lock(mutex_);
  orders_.push_back(&order);
  changed_.notify_all();
  changed_.wait(mutex_, [&]() REQUIRES(mutex_) { return order.started.has_value(); });
  return *std::move(order.started);
}

void ThreadStarter::run() {
  MutexLock lock(mutex_);
  while (true) {
    changed_.wait(mutex_, [this]() REQUIRES(mutex_) { return stopping_ || !orders_.empty(); });
    if (orders_.empty()) return;
    Order& order = *orders_.front();
    orders_.pop_front();
    order.started = Thread::start(order.options, std::move(order.body));
    changed_.notify_all();
  }
}

}  // namespace foliot
