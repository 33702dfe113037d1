#include "serving/state_keeper.h"

#include <chrono>
#include <utility>
#include <vector>

namespace foliot {
namespace {

constexpr std::chrono::seconds kStateInterval(1);
constexpr int kStateNice = 10;

}  // namespace

Status StateKeeper::start(const std::filesystem::path& file) {
  FOLIOT_ASSIGN_OR_RETURN(StateFile opened, StateFile::open(file));
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<StateFile::Learned> learned, opened.read());
  inference_.restore(learned);
  file_.emplace(std::move(opened));
  FOLIOT_ASSIGN_OR_RETURN(thread_, Thread::start({.name = "state", .nice = kStateNice}, [this] { run(); }));
  return Status();
}

void StateKeeper::run() {
  bool last = false;
  while (!last) {
    {
      std::unique_lock lock(mutex_);
      last = stop_.wait_for(lock, kStateInterval, [this] { return stopping_; });
    }
    if (const Status status = file_->write(inference_.take_changes()); !status.ok()) on_failure_(status.message());
  }
}

void StateKeeper::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  thread_.join();
}

}  // namespace foliot
