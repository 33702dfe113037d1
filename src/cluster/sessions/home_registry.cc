#include "cluster/sessions/home_registry.h"

#include <fmt/format.h>

#include <algorithm>

namespace foliot {

Status HomeRegistry::join(uint64_t session, HomeOffer home, TimePoint now) {
  if (entries_.size() == kHomesMax && !entries_.contains(home.name)) {
    return Status::resource_exhausted(fmt::format(
        "the limit of {} front ends that keep users is reached; start this one without --personal", kHomesMax));
  }
  const std::string name = home.name;
  entries_.insert_or_assign(name, Entry{session, std::move(home)});
  changed_ = true;
  if (first_at_.is_infinite()) first_at_ = now + kFirstAfter;
  return Status();
}

void HomeRegistry::leave(uint64_t session) {
  changed_ =
      std::erase_if(entries_, [session](const auto& entry) { return entry.second.session == session; }) > 0 || changed_;
}

std::optional<Homes> HomeRegistry::take(TimePoint now) {
  if (!changed_ || now < first_at_) return std::nullopt;
  changed_ = false;
  // From the clock: another controller, or this one after a restart, gives other epochs.
  const auto microseconds = static_cast<uint64_t>((now - TimePoint()).nanoseconds() / 1000);
  epoch_ = std::max(microseconds + 1, epoch_.value_or(0) + 1);
  Homes homes{.epoch = *epoch_, .homes = {}};
  for (const auto& [name, entry] : entries_) homes.homes.push_back(entry.home);
  return homes;
}

}  // namespace foliot
