#include "control/controller/request_table.h"

#include <algorithm>
#include <limits>

#include "foundation/base/check.h"

namespace foliot {

RequestTable::RequestTable(uint32_t waiting_max, FairShare& fair_share)
    : fair_share_(fair_share),
      queue_shares_({waiting_max, std::numeric_limits<uint64_t>::max()}, [this](const QueueShares::Entry& share) {
        const Entry* found = find_waiting(RequestId(share.id));
        return found != nullptr && found->request.sequence == share.sequence && found->returns == share.attempt;
      }) {}

const RequestTable::Entry* RequestTable::find_waiting(RequestId request) const {
  const Entry* found = requests_.find(request);
  return found != nullptr && found->waits ? found : nullptr;
}

RequestTable::Entry& RequestTable::at(RequestId request) {
  Entry* found = requests_.find(request);
  FOLIOT_CHECK(found != nullptr);
  return *found;
}

bool RequestTable::make_room(const Entry& newcomer) {
  evicted_.clear();
  if (!queue_shares_.admit(share_of(newcomer), evicted_)) return false;
  for (const QueueShares::Entry& share : evicted_) at(RequestId(share.id)).evicted = true;
  return true;
}

RequestTable::Entry& RequestTable::add(const Entry& entry) {
  FOLIOT_CHECK(requests_.insert(entry.request.id, entry));
  return at(entry.request.id);
}

void RequestTable::enqueue(Entry& entry) {
  entry.waits = true;
  ++waiting_of(entry.request);
  entry.work = fair_share_.on_waiting(entry.request);
}

void RequestTable::enqueue_again(Entry& entry) {
  ++entry.returns;
  queue_shares_.add(share_of(entry));
  enqueue(entry);
}

void RequestTable::dequeue(Entry& entry) {
  FOLIOT_CHECK(entry.waits && waiting_of(entry.request) > 0);
  entry.waits = false;
  --waiting_of(entry.request);
  fair_share_.on_taken(entry.request, entry.work);
  if (!entry.evicted) queue_shares_.remove(share_of(entry));
}

RequestTable::Entry RequestTable::take(RequestId request) {
  const Entry taken = at(request);
  FOLIOT_CHECK(!taken.waits);
  requests_.erase(request);
  return taken;
}

std::vector<Request> RequestTable::waiting(const std::function<bool(const Request&)>& which) const {
  std::vector<Request> found;
  requests_.for_each([&](RequestId, const Entry& entry) {
    if (entry.waits && which(entry.request)) found.push_back(entry.request);
  });
  std::ranges::sort(found, {}, &Request::sequence);
  return found;
}

QueueShares::Entry RequestTable::share_of(const Entry& entry) {
  const Request& request = entry.request;
  return {.id = request.id.value(),
          .sequence = request.sequence,
          .attempt = entry.returns,
          .arrival = request.arrival,
          .deadline = request.deadline,
          .tenant = request.tenant,
          .weight = request.tenant_weight,
          .offline = request.offline};
}

}  // namespace foliot
