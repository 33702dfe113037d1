#include "models/mirror/stored_packages.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "foundation/base/error_text.h"
#include "foundation/objectstore/download.h"
#include "foundation/platform/descriptor.h"

namespace foliot {
namespace {

constexpr int kOfferNice = 10;

std::string name_of(const std::string& key) { return key + ".foliot"; }

}  // namespace

Result<std::unique_ptr<StoredPackages>> StoredPackages::start(StoredPackagesOptions options) {
  std::unique_ptr<StoredPackages> packages(new StoredPackages(std::move(options)));
  {
    const MutexLock lock(packages->fetching_);
    packages->fetched_from_ = packages->options_.connect([&self = *packages] { return self.stopping_.load(); });
  }
  FOLIOT_ASSIGN_OR_RETURN(packages->thread_,
                          Thread::start({.name = "share", .nice = kOfferNice}, [&self = *packages] { self.run(); }));
  return packages;
}

StoredPackages::~StoredPackages() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool StoredPackages::fetch(const std::string& key, int output) {
  {
    const MutexLock lock(mutex_);
    if (options_.now() < paused_until_) return false;
  }
  const Status status = fetch_now(key, output);
  if (!status.ok() && status.code() != StatusCode::kNotFound) fail(status);
  return status.ok();
}

Status StoredPackages::fetch_now(const std::string& key, int output) {
  const MutexLock lock(fetching_);
  FOLIOT_ASSIGN_OR_RETURN(const StoredObject object, fetched_from_->find(name_of(key)));
  return download(*fetched_from_, object, output).status();
}

void StoredPackages::offer(const std::string& key, const std::filesystem::path& package) {
  {
    const MutexLock lock(mutex_);
    if (offers_.size() == kOffersMax) return;
    offers_.push_back({key, package});
  }
  changed_.notify_all();
}

void StoredPackages::run() {
  const auto place = options_.connect([this] { return stopping_.load(); });
  MutexLock lock(mutex_);
  while (true) {
    changed_.wait(mutex_, [this]() REQUIRES(mutex_) { return stopping_ || !offers_.empty(); });
    if (stopping_) return;
    const Offer offer = std::move(offers_.front());
    offers_.pop_front();
    lock.unlock();
    if (const Status status = store(*place, offer); !status.ok()) fail(status.with_context("a package is not shared"));
    lock.lock();
  }
}

Status StoredPackages::store(ObjectStore& store, const Offer& offer) const {
  const Descriptor file(::open(offer.package.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) {
    return Status::internal(fmt::format("cannot read {}: {}", offer.package.string(), error_text(errno)));
  }
  return store.write(name_of(offer.key), file.number());
}

void StoredPackages::fail(const Status& status) {
  {
    const MutexLock lock(mutex_);
    if (stopping_) return;
    paused_until_ = options_.now() + kPause;
  }
  options_.log(Severity::kWarning, status.message());
}

}  // namespace foliot
